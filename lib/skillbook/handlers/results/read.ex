defmodule Skillbook.Handlers.Results.Read do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.Reply.{Excerpt, Truncation}
  alias Skillbook.{FlagError, NotFoundError, Result}

  @impl true
  def execute(%{"id" => id, "from" => from}, context) do
    with {:ok, text, about} <- fetch(context.view, id),
         :ok <- within(from, about) do
      # The run cuts it where it is too long, as any result.
      {:ok, Result.ok(Excerpt.from(text, from), metadata: %{cut: Map.put(about, :from, from)})}
    end
  end

  defp fetch(view, id) do
    with :error <- Truncation.fetch(view, id),
         do: {:error, %NotFoundError{kind: "result", id: id, find: nil}}
  end

  defp within(from, %{kept: kept}) when from <= kept, do: :ok

  defp within(from, %{kept: kept}) do
    expected = "a whole number up to #{kept}, the last character that is kept"

    {:error,
     %FlagError{kind: :invalid, flag: "from", value: from, expected: expected, example: "#{kept}"}}
  end
end
