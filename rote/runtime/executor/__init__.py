"""The parts of the executor: operations, their fusing, the places of blocks, and transports that bind them to ranks."""
