// Package picker is an endpoint picker for InferencePools (Gateway API inference extension, protocol 1.0): a gateway
// asks it over Envoy's external processing where a request is to go, and sends it there itself.
//
// Apps of one stage go to the workers that the plan in force has for them, weighted by their shares, to the one with
// the fewest requests under way for its share; the request's model is rewritten to the variant that is loaded there.
// All else goes to the fleet's dispatchers: graphs, streams, questions about models, and apps that no worker has
// loaded.
package picker
