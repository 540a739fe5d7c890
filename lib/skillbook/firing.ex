defmodule Skillbook.Firing do
  @moduledoc """
  One time at which an entry runs by its schedule.

  ## Fields

    * `:book` - the book
    * `:name` - the name of the entry
    * `:at` - the time of its schedule, UTC, in whole seconds; together with the name it is unique

  ## Examples

      iex> Skillbook.Firing.new(MyApp.Skills, "workflows.digest", "2026-03-02T08:00:00Z")
      %Skillbook.Firing{book: MyApp.Skills, name: "workflows.digest", at: ~U[2026-03-02 08:00:00Z]}
  """

  @type t :: %__MODULE__{book: atom(), name: String.t(), at: DateTime.t()}

  @enforce_keys [:book, :name, :at]
  defstruct [:book, :name, :at]

  @doc "Makes one of a time or of its text, as a queue that keeps JSON has it."
  @spec new(atom(), String.t(), DateTime.t() | String.t()) :: t()
  def new(book, name, %DateTime{} = at) when is_atom(book) and is_binary(name),
    do: %__MODULE__{book: book, name: name, at: DateTime.truncate(at, :second)}

  def new(book, name, at) when is_binary(at) do
    case DateTime.from_iso8601(at) do
      {:ok, at, _offset} ->
        new(book, name, at)

      {:error, _} ->
        raise ArgumentError,
              "expected the time of a firing such as 2026-03-02T08:00:00Z, got: #{inspect(at)}"
    end
  end
end
