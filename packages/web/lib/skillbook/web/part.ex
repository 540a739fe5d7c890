defmodule Skillbook.Web.Part do
  @moduledoc false
  # The web server: its count of wrong tokens, which all books of a node share.

  use Skillbook.Part

  alias Skillbook.Web.Attempts

  @impl true
  def shared do
    Attempts.start()
    []
  end
end
