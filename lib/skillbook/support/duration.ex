defmodule Skillbook.Support.Duration do
  @moduledoc false
  # Writes milliseconds for error messages.

  @spec text(pos_integer()) :: String.t()
  def text(milliseconds) when rem(milliseconds, 1000) == 0, do: "#{div(milliseconds, 1000)} s"
  def text(milliseconds), do: "#{milliseconds} ms"
end
