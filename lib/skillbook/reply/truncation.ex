defmodule Skillbook.Reply.Truncation do
  @moduledoc false
  # Truncates a result that is too long for the model and adds a notice with the command that
  # reads on.

  alias Skillbook.Reply.{Excerpt, StoredResults}
  alias Skillbook.Support.External
  alias Skillbook.{Entry, Result, Telemetry, View}

  @read "results.read"
  @handler "Skillbook.Handlers.Results.Read"

  @doc """
  Returns the result with at most `max` characters of content, and a notice if some are left out.

  `metadata.cut` then has `:from` and `:to`, the range of characters in the content, and `:total`,
  their full number. If the text is stored, `:id` is its id and `:kept` the number of characters
  that can be read; otherwise they are `nil` and 0.
  """
  @spec result(Result.t(), View.t(), pos_integer() | :infinity) :: Result.t()
  def result(%Result{name: @read, metadata: %{cut: about}} = result, view, max) do
    if reads?(view), do: read(result, about, view, max), else: first(result, view, max)
  end

  def result(%Result{} = result, view, max), do: first(result, view, max)

  # A result of `results.read` is a part of a text that is stored already.
  defp read(result, %{from: from} = about, view, max) do
    {parts, about} = Map.pop(about, :parts, [])
    {mark, about} = Map.pop(about, :mark)
    result = %{result | metadata: result.metadata |> Map.put(:cut, about) |> with_parts(parts)}

    case Excerpt.cut(result.content, max) do
      {page, length} ->
        finish(result, view, marked(page, mark), Map.put(about, :to, from + length - 1))

      :fits when about.kept < about.total ->
        finish(result, view, marked(result.content, mark), Map.put(about, :to, about.kept))

      :fits ->
        %{result | content: marked(result.content, mark)}
    end
  end

  defp marked(page, nil), do: page
  defp marked(page, at), do: External.rest(page, at)

  defp first(result, view, max) do
    case Excerpt.cut(result.content, max) do
      {page, length} ->
        finish(result, view, page, Map.merge(store(result, view), %{from: 1, to: length}))

      :fits ->
        result
    end
  end

  @doc "Returns a text that was stored for the profile, if the view still shows its origin."
  @spec fetch(View.t(), String.t()) :: {:ok, String.t(), StoredResults.about()} | :error
  def fetch(%View{book: nil}, _id), do: :error

  def fetch(view, id) do
    with {:ok, origin, text, about} <- StoredResults.fetch(view.book, view.profile, id),
         true <- visible?(view, origin) do
      {:ok, text, about}
    else
      _ -> :error
    end
  end

  defp visible?(view, {:entry, name}),
    do: match?({:ok, %Entry{name: ^name}}, View.fetch(view, name))

  defp visible?(view, {:generation, generation}), do: view.generation == generation

  defp store(result, view) do
    if view.book != nil and reads?(view) do
      origin = if result.name, do: {:entry, result.name}, else: {:generation, view.generation}
      about = %{parts: parts(result), external: result.metadata[:external] == true}
      about = StoredResults.put(view.book, view.profile, origin, about, result.content)
      Map.drop(about, [:parts, :external])
    else
      not_stored(result)
    end
  catch
    # The book has stopped.
    :exit, _ -> not_stored(result)
  end

  # Another entry may have this name, so compare the handler.
  defp reads?(view), do: match?({:ok, %Entry{handler: @handler}}, View.fetch(view, @read))

  defp not_stored(result), do: %{id: nil, total: Excerpt.size(result.content), kept: 0}

  defp finish(result, view, page, cut) do
    Telemetry.event(
      [:skillbook, :result, :cut],
      %{characters: cut.total, shown: cut.to - cut.from + 1},
      %{book: view.book, profile: view.profile.id, skill: result.name, kept: cut.id != nil}
    )

    content = String.trim_trailing(page) <> "\n\n" <> notice(cut)
    # The model has only a part of these texts, so they may be sent again.
    metadata =
      result.metadata |> Map.delete(:activates) |> Map.put(:cut, cut) |> with_parts(parts(result))

    %{result | content: content, metadata: metadata}
  end

  defp parts(%Result{metadata: metadata}), do: metadata[:activates] || metadata[:parts] || []

  defp with_parts(metadata, []), do: metadata
  defp with_parts(metadata, parts), do: Map.put(metadata, :parts, parts)

  defp notice(cut) do
    "[Cut: these are the characters #{cut.from} to #{cut.to} of #{cut.total}; " <>
      "#{cut.total - cut.to} are left out. #{rest(cut)}]"
  end

  defp rest(cut) when cut.to < cut.kept,
    do: "To read on, write: #{@read} --id #{cut.id} --from #{cut.to + 1}"

  defp rest(_cut), do: "The rest was not stored: ask for less at once."
end
