"""The parts of the executor: operations, their fusing, their places, and the transports that bind them to ranks."""
