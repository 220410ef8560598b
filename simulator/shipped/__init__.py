"""Which kernel of a release's shipped Metal library, with which buffers, answers a call of an operator."""
