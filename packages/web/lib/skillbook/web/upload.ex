defmodule Skillbook.Web.Upload do
  @moduledoc """
  A file of a form.

  ## Fields

    * `:name` - the file's name as the browser sent it. It may be anything; never use it as a path
    * `:type` - the media type that the browser sent, such as `"text/markdown"`
    * `:data` - the bytes
  """

  @type t :: %__MODULE__{name: String.t(), type: String.t(), data: binary()}

  @enforce_keys [:name, :data]
  defstruct [:name, :data, type: "application/octet-stream"]

  defimpl Inspect do
    def inspect(upload, _options),
      do: "#Skillbook.Web.Upload<#{inspect(upload.name)}, #{byte_size(upload.data)} bytes>"
  end
end
