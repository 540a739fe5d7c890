defmodule Skillbook.Reply.Truncation do
  @moduledoc false
  # Cuts a result that is too long for the model, and says how the rest is to be had.

  alias Skillbook.Reply.{Excerpt, StoredResults}
  alias Skillbook.{Entry, Result, Telemetry, View}

  @read "results.read"
  @handler "Skillbook.Handlers.Results.Read"

  @doc """
  The result with a content of so many characters at most, and a notice if any are left out.

  `metadata.cut` then has `:from` and `:to`, the characters that are shown, and `:total`, how many there are; `:id`, by
  which they are read on, and `:kept`, up to which of them, or `nil` and 0.
  """
  @spec result(Result.t(), View.t(), pos_integer() | :infinity) :: Result.t()
  def result(%Result{name: @read, metadata: %{cut: about}} = result, view, max) do
    if reads?(view), do: read(result, about, view, max), else: first(result, view, max)
  end

  def result(%Result{} = result, view, max), do: first(result, view, max)

  # What `results.read` gives is of a text that is kept already.
  defp read(result, %{from: from} = about, view, max) do
    {parts, about} = Map.pop(about, :parts, [])
    result = %{result | metadata: result.metadata |> Map.put(:cut, about) |> with_parts(parts)}

    case Excerpt.cut(result.content, max) do
      {page, shown} ->
        finish(result, view, page, Map.put(about, :to, from + shown - 1))

      :whole when about.kept < about.total ->
        finish(result, view, result.content, Map.put(about, :to, about.kept))

      :whole ->
        result
    end
  end

  defp first(result, view, max) do
    case Excerpt.cut(result.content, max) do
      {page, shown} ->
        finish(result, view, page, Map.merge(keep(result, view), %{from: 1, to: shown}))

      :whole ->
        result
    end
  end

  @doc "The text of a result that was cut, for who may read it and still sees what it is of."
  @spec fetch(View.t(), String.t()) :: {:ok, String.t(), StoredResults.about()} | :error
  def fetch(%View{book: nil}, _id), do: :error

  def fetch(view, id) do
    with {:ok, origin, text, about} <- StoredResults.fetch(view.book, view.profile, id),
         true <- shown?(view, origin) do
      {:ok, text, about}
    else
      _ -> :error
    end
  end

  defp shown?(view, {:entry, name}),
    do: match?({:ok, %Entry{name: ^name}}, View.fetch(view, name))

  defp shown?(view, {:generation, generation}), do: view.generation == generation

  defp keep(result, view) do
    if view.book != nil and reads?(view) do
      origin = if result.name, do: {:entry, result.name}, else: {:generation, view.generation}
      about = StoredResults.put(view.book, view.profile, origin, parts(result), result.content)
      Map.delete(about, :parts)
    else
      lost(result)
    end
  catch
    # The book stopped meanwhile.
    :exit, _ -> lost(result)
  end

  # An entry of this name may also be another.
  defp reads?(view), do: match?({:ok, %Entry{handler: @handler}}, View.fetch(view, @read))

  defp lost(result), do: %{id: nil, total: Excerpt.size(result.content), kept: 0}

  defp finish(result, view, page, cut) do
    Telemetry.event(
      [:skillbook, :result, :cut],
      %{characters: cut.total, shown: cut.to - cut.from + 1},
      %{book: view.book, profile: view.profile.id, skill: result.name, kept: cut.id != nil}
    )

    content = String.trim_trailing(page) <> "\n\n" <> notice(cut)
    # A text of which the model has a part is none that it need not be sent again.
    metadata =
      result.metadata |> Map.delete(:activates) |> Map.put(:cut, cut) |> with_parts(parts(result))

    %{result | content: content, metadata: metadata}
  end

  defp parts(%Result{metadata: metadata}), do: metadata[:activates] || metadata[:parts] || []

  defp with_parts(metadata, []), do: metadata
  defp with_parts(metadata, parts), do: Map.put(metadata, :parts, parts)

  defp notice(cut) do
    "[Cut: these are the characters #{cut.from} to #{cut.to} of #{cut.total}; #{cut.total - cut.to} are left out. " <>
      "#{rest(cut)}]"
  end

  defp rest(cut) when cut.to < cut.kept,
    do: "To read on, write: #{@read} --id #{cut.id} --from #{cut.to + 1}"

  defp rest(_cut), do: "They cannot be read on: ask for less at a time."
end
