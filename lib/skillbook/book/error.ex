defmodule Skillbook.ProfileError do
  @moduledoc """
  Raised, or returned, when the function in a book's `:profiles` gives no profile because it
  failed. Nothing runs without a profile.

  ## Fields

    * `:book` - the name of the book
    * `:id` - the id of the profile
    * `:kind` - the kind of failure:
      * `:error` - the function returned an error, or options that are no profile
      * `:crash` - it raised, threw or exited
      * `:timeout` - it took longer than its time limit
      * `:answer` - it returned another value
      * `:unknown` - there is no such profile
      * `:leader` - it cannot lead a conversation of another profile, whose `:reason` is a
        `Skillbook.OptionError`
    * `:reason` - the exception, the reason of the exit, the limit in milliseconds, or a
      description of the value, without the values in it

  ## Examples

      iex> error = %Skillbook.ProfileError{book: :shop, id: "ann", kind: :timeout, reason: 5_000}
      iex> Exception.message(error)
      "the profile \\"ann\\" of the book :shop cannot be read: the function in :profiles took " <>
        "longer than 5000 ms"
  """

  @type t :: %__MODULE__{
          book: atom(),
          id: String.t(),
          kind: :error | :crash | :timeout | :answer | :unknown | :leader,
          reason: Exception.t() | term()
        }

  @enforce_keys [:book, :id, :kind]
  defexception [:book, :id, :kind, :reason]

  @impl true
  def message(%{kind: :unknown} = error),
    do: "the book #{inspect(error.book)} has no profile #{inspect(error.id)}"

  def message(%{kind: :leader} = error) do
    "the profile #{inspect(error.id)} of the book #{inspect(error.book)} cannot lead this " <>
      "conversation: #{Exception.message(error.reason)}"
  end

  def message(error) do
    "the profile #{inspect(error.id)} of the book #{inspect(error.book)} cannot be read: " <>
      "the function in :profiles #{text(error.kind, error.reason)}"
  end

  defp text(:error, error), do: "returned an error: #{Exception.message(error)}"
  defp text(:timeout, limit), do: "took longer than #{limit} ms"

  defp text(:answer, got) do
    "returned #{got}, expected {:ok, profile}, :error, nil or {:error, exception}, where the " <>
      "profile has this id or none"
  end

  defp text(:crash, {error, _stack}) when is_exception(error),
    do: "crashed: #{Exception.format_banner(:error, error)}"

  defp text(:crash, _reason), do: "crashed"
end

defmodule Skillbook.StoppedError do
  @moduledoc """
  Returned when a book stops, or has stopped, in the middle of a run of `Skillbook.Agent.run/3`.

  ## Fields

    * `:book` - the name of the book

  ## Examples

      iex> Exception.message(%Skillbook.StoppedError{book: MyApp.Skills})
      "the book MyApp.Skills stops or has stopped; go on with the transcript when it runs again"
  """

  @type t :: %__MODULE__{book: atom()}

  @enforce_keys [:book]
  defexception [:book]

  @impl true
  def message(%{book: book}) do
    "the book #{inspect(book)} stops or has stopped; go on with the transcript when it runs again"
  end
end
