"""The packet: a review and its evidence in, what a person decides by out, as one HTML file or as a part of a page."""
