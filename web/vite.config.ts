import { defineConfig } from 'vite';

// One script and one sheet: the page is small, and a second round trip costs more than the bytes.
export default defineConfig({
  build: { outDir: 'dist', emptyOutDir: true, target: 'es2022', modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: { proxy: { '/api': 'http://127.0.0.1:8002' } },
});
