package kubelet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe follows a container's readiness until ctx ends.
func (p *pod) probe(ctx context.Context, c *corev1.Container) {
	r := c.ReadinessProbe
	// Tests are in more of a hurry than clusters: as often as four times a second until it is ready.
	period, eager := time.Duration(max(r.PeriodSeconds, 1))*time.Second, 250*time.Millisecond
	failures := int32(0)
	for {
		one, cancel := context.WithTimeout(ctx, time.Duration(max(r.TimeoutSeconds, 1))*time.Second)
		err := p.check(one, c, r)
		cancel()
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		was := p.ready[c.Name]
		if err == nil {
			failures = 0
			p.ready[c.Name] = true
		} else if failures++; failures >= max(r.FailureThreshold, 1) {
			p.ready[c.Name] = false
		}
		is := p.ready[c.Name]
		p.mu.Unlock()
		if is != was {
			p.report(corev1.PodRunning, "")
		}
		wait := eager
		if is {
			wait = period
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (p *pod) check(ctx context.Context, c *corev1.Container, r *corev1.Probe) error {
	at := func(port intstr.IntOrString) string {
		n := port.IntVal
		for _, x := range c.Ports {
			if port.Type == intstr.String && x.Name == port.StrVal {
				n = x.ContainerPort
			}
		}
		return net.JoinHostPort(p.address.String(), strconv.Itoa(int(n)))
	}
	switch {
	case r.HTTPGet != nil:
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at(r.HTTPGet.Port)+r.HTTPGet.Path,
			nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode >= http.StatusBadRequest {
			return fmt.Errorf("it answers %s", answer.Status)
		}
		return nil
	case r.GRPC != nil:
		conn, err := grpc.NewClient("passthrough:///"+at(intstr.FromInt32(r.GRPC.Port)),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer conn.Close()
		service := ""
		if r.GRPC.Service != nil {
			service = *r.GRPC.Service
		}
		answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err == nil && answer.Status != healthpb.HealthCheckResponse_SERVING {
			err = fmt.Errorf("it answers %s", answer.Status)
		}
		return err
	case r.TCPSocket != nil:
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", at(r.TCPSocket.Port))
		if err == nil {
			conn.Close()
		}
		return err
	}
	return nil
}
