defmodule Skillbook.Agent.ResultMedia do
  @moduledoc false
  # Images, sounds and files of results (`:media` of their metadata) for the model of a run. A
  # medium that the model does not take becomes a note in the text, since the call has run and its
  # text is an answer too.

  alias Skillbook.Agent.State
  alias Skillbook.Model
  alias Skillbook.Model.{Content, Media}
  alias Skillbook.Result

  # Media of one message. Others are notes, up to so many.
  @max_media 20
  @max_notes 100

  @doc "The content of a message with the text of these results, and their media."
  @spec content(State.t(), String.t(), [Result.t()]) :: Model.content()
  def content(state, text, results) do
    case Enum.flat_map(results, &given/1) do
      [] ->
        text

      given ->
        {media, notes} = Enum.reduce(given, {[], []}, &add(&1, &2, state.model))
        notes = notes |> Enum.reverse() |> Enum.take(@max_notes)
        text = Enum.join([text | notes], "\n")
        if media == [], do: text, else: [text | Enum.reverse(media)]
    end
  end

  @doc "The notes of a result's media, which are kept in place of the bytes."
  @spec notes(Result.t()) :: [String.t()]
  def notes(result) do
    for one <- result |> given() |> Enum.take(@max_notes) do
      case one do
        %Media{} = media -> Content.note(media)
        note -> note
      end
    end
  end

  # In place of one that cannot be read, and of the bytes of a run that goes on later, is a note.
  defp given(%Result{metadata: %{media: [_ | _] = list}}) do
    if List.improper?(list), do: [], else: Enum.map(list, &medium/1)
  end

  defp given(_result), do: []

  defp medium(%{data: data, type: type} = given) do
    name = with %{uri: uri} when is_binary(uri) <- given, do: Path.basename(uri), else: (_ -> nil)

    with {:error, _error} <- Media.new(type: type, data: data, name: name),
         {:error, _error} <- Media.new(type: type, data: data) do
      "[a medium that is none]"
    else
      {:ok, media} -> media
    end
  end

  defp medium(note) when is_binary(note), do: note
  defp medium(_other), do: "[a medium that is none]"

  defp add(note, {media, notes}, _model) when is_binary(note),
    do: {media, ["#{note} is not shown" | notes]}

  defp add(medium, {media, notes}, model) do
    message = %{role: :user, content: Enum.reverse([medium | media])}

    if length(media) < @max_media and Model.check(model, [message]) == :ok,
      do: {[medium | media], notes},
      else: {media, ["#{Content.note(medium)} is not shown" | notes]}
  end
end
