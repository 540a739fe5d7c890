defmodule Skillbook.Handlers.Results.Read do
  @moduledoc false
  # `results.read`: reads on in a result that was too long for the model.

  @behaviour Skillbook.Handler

  alias Skillbook.Reply.{Excerpt, Truncation}
  alias Skillbook.{FlagError, NotFoundError, Result}

  @impl true
  def execute(%{"id" => id, "from" => from}, context) do
    with {:ok, text, about} <- fetch(context.view, id),
         :ok <- check_from(from, about) do
      {external, about} = Map.pop(about, :external, false)
      about = Map.merge(about, %{from: from, mark: if(external, do: mark(text, from))})
      metadata = if external, do: %{cut: about, external: true}, else: %{cut: about}
      # The run truncates it again if it is too long, like any result.
      {:ok, Result.ok(Excerpt.from(text, from), metadata: metadata)}
    end
  end

  # The first line has its own head.
  defp mark(_text, 1), do: nil

  defp mark(text, from),
    do: if(String.starts_with?(Excerpt.from(text, from - 1), "\n"), do: :line, else: :within)

  defp fetch(view, id) do
    with :error <- Truncation.fetch(view, id),
         do: {:error, %NotFoundError{kind: "result", id: id, find: nil}}
  end

  defp check_from(from, %{kept: last}) when from <= last, do: :ok

  defp check_from(from, %{kept: last}) do
    expected = "a whole number up to #{last}, the last stored character"
    FlagError.invalid("from", from, expected, "#{last}")
  end
end
