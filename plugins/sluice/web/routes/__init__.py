"""One module for each kind of page; each makes an `APIRouter` of the surroundings and the templates."""
