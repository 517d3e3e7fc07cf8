"""A Django REST framework app in one file: hotels, paged by each of the framework's three pagination classes."""

import os

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="only-for-tests",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["HOTELS"]}},
    INSTALLED_APPS=["rest_framework"],
    REST_FRAMEWORK={"DEFAULT_AUTHENTICATION_CLASSES": [], "UNAUTHENTICATED_USER": None},
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402  Django wants its settings first
from django.db import connection, models  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework import generics, pagination, serializers  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402


class Hotel(models.Model):  # noqa: DJ008  nobody prints one
    """A hotel."""

    name = models.TextField()
    stars = models.TextField(null=True)  # noqa: DJ001  a hotel without stars has none
    updated_at = models.DateTimeField()

    class Meta:  # noqa: D106  Django asks for it
        app_label = "hotels"


class HotelSerializer(serializers.ModelSerializer):
    """A hotel as JSON."""

    id = serializers.IntegerField()

    class Meta:  # noqa: D106  Django asks for it
        model = Hotel
        fields = ("id", "name", "stars", "updated_at")


class ByPage(pagination.PageNumberPagination):
    """Pages by number, of a size that may be asked for."""

    page_size_query_param = "page_size"
    page_size = 4


class ByOffset(pagination.LimitOffsetPagination):
    """Pages by offset."""

    default_limit = 4


class ByCursor(pagination.CursorPagination):
    """Pages by a cursor, whose address stands in the answer."""

    page_size = 4
    ordering = ("updated_at", "id")


class Hotels(generics.ListAPIView):
    """The hotels, paged, those that changed since a time if one is given; and posted, by the list."""

    serializer_class = HotelSerializer

    def get_queryset(self) -> models.QuerySet:
        """Return what is asked for."""
        hotels = Hotel.objects.order_by("updated_at", "id")
        since = self.request.query_params.get("updated_since")
        return hotels.filter(updated_at__gte=since) if since else hotels

    def post(self, request: Request) -> Response:
        """Add hotels, or change those that are there."""
        for hotel in request.data:
            values = {key: hotel[key] for key in ("name", "stars", "updated_at")}
            Hotel.objects.update_or_create(id=hotel["id"], defaults=values)
        return Response(len(request.data))


with connection.schema_editor() as editor:
    editor.create_model(Hotel)

urlpatterns = [
    path("hotels/", Hotels.as_view(pagination_class=None)),
    path("by-page/", Hotels.as_view(pagination_class=ByPage)),
    path("by-offset/", Hotels.as_view(pagination_class=ByOffset)),
    path("by-cursor/", Hotels.as_view(pagination_class=ByCursor)),
]
application = get_wsgi_application()
