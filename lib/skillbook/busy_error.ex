defmodule Skillbook.BusyError do
  @moduledoc """
  A command that waited for its turn and did not get one. Nothing was done.

  ## Fields

    * `:name` - the skill's name
    * `:max_wait` - how long it waited, in milliseconds

  ## Examples

      iex> Exception.message(%Skillbook.BusyError{name: "email.send", max_wait: 30_000})
      "`email.send` was not run: too many commands were running, and its turn did not come within 30 s. Try again later, or tell the user."
  """

  alias Skillbook.Duration

  @type t :: %__MODULE__{name: String.t(), max_wait: pos_integer()}

  defexception [:name, :max_wait]

  @impl true
  def message(%{name: name, max_wait: max_wait}) do
    "`#{name}` was not run: too many commands were running, and its turn did not come within " <>
      "#{Duration.text(max_wait)}. Try again later, or tell the user."
  end
end
