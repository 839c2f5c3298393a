"""The stores that come with the product, and the parent process that keeps the whole tree of `catchment up` alive."""
