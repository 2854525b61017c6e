"""Methods of exchange: how the messages of one step travel."""
