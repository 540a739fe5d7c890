defmodule Skillbook.Model.Content do
  @moduledoc false
  # The content of a message: text, or a list of texts and `Skillbook.Model.Media`.

  alias Skillbook.Model.Media
  alias Skillbook.{Model, ModelError}
  alias Skillbook.Support.{Options, TokenCount}

  @doc "Raises `ArgumentError` unless the argument of a function is a content."
  @spec check!(String.t(), atom(), term()) :: :ok
  def check!(function, argument, content) do
    unless content?(content) do
      raise ArgumentError,
            "expected text, or a list of texts and Skillbook.Model.Media, as the argument " <>
              "`#{argument}` of #{function}, got: " <>
              inspect(content, limit: 5, printable_limit: 100)
    end

    :ok
  end

  defp content?([_ | _] = parts), do: Enum.all?(parts, &(is_binary(&1) or is_struct(&1, Media)))
  defp content?(text), do: is_binary(text)

  @doc """
  The content as text, with a note in the place of each medium.

      iex> photo = Skillbook.Model.Media.new!(type: "image/png", data: "...", name: "a.png")
      iex> Skillbook.Model.Content.text(["What is this?", photo])
      ~s(What is this?\\n\\n[image: "a.png", image/png, 3 bytes])
  """
  @spec text(Model.content(), (Media.t() -> String.t())) :: String.t()
  def text(content, note \\ &note/1)
  def text(text, _note) when is_binary(text), do: text

  def text(parts, note),
    do: Enum.map_join(parts, "\n\n", &if(is_binary(&1), do: &1, else: note.(&1)))

  @doc "The media of messages, in their order."
  @spec media([%{required(:content) => Model.content(), optional(atom()) => term()}]) :: [
          Media.t()
        ]
  def media(messages),
    do: for(%{content: [_ | _] = parts} <- messages, %Media{} = media <- parts, do: media)

  @doc "The note of a medium."
  @spec note(Media.t()) :: String.t()
  def note(media), do: "[#{kind(media)}: #{Media.describe(media)}]"

  @doc "What a medium is to models."
  @spec kind(Media.t()) :: :image | :audio | :file
  def kind(%{type: "image/" <> _}), do: :image
  def kind(%{type: "audio/" <> _}), do: :audio
  def kind(_media), do: :file

  @doc "Joins the contents of messages."
  @spec join([Model.content()]) :: Model.content()
  def join(contents) do
    if Enum.all?(contents, &is_binary/1),
      do: Enum.join(contents, "\n\n"),
      else: Enum.flat_map(contents, &List.wrap/1)
  end

  # Tokens of an image of the size to which vendors scale it down, the bytes of one token of a
  # page with pictures and of compressed audio, and the tokens of a short document, for which one
  # by a URL counts.
  @image 1_600
  @bytes_of_token %{file: 50, audio: 500}
  @least 2_000

  @doc "Estimates the tokens, rather too many than too few."
  @spec tokens(Model.content()) :: non_neg_integer()
  def tokens(text) when is_binary(text), do: TokenCount.estimate(text)
  def tokens(parts) when is_list(parts), do: parts |> Enum.map(&tokens/1) |> Enum.sum()
  def tokens(%Media{type: "image/" <> _}), do: @image
  def tokens(%Media{type: "text/" <> _, source: {:data, text}}), do: TokenCount.estimate(text)
  def tokens(%Media{source: {:url, _url}}), do: @least

  def tokens(%Media{source: {:data, data}} = media),
    do: max(div(byte_size(data), @bytes_of_token[kind(media)]), @least)

  # For vendors

  @doc "The URL of a medium: its own, or one with its bytes."
  @spec url(Media.t()) :: String.t()
  def url(%Media{source: {:url, url}}), do: url

  def url(%Media{type: type, source: {:data, data}}),
    do: "data:#{type};base64,#{Base.encode64(data)}"

  @doc "The name of a file, which some vendors require."
  @spec name(Media.t()) :: String.t()
  def name(%Media{name: nil, type: type}),
    do: "file." <> (type |> String.split("/") |> List.last())

  def name(%Media{name: name}), do: name

  # Limits

  @limits [max_bytes: 10_000_000, max_total: 15_000_000, max_parts: 20]

  @doc "The option `:media` of a model."
  @spec option() :: {String.t(), (term() -> boolean())}
  def option do
    {"a list of :types, :max_bytes, :max_total and :max_parts",
     fn option ->
       Keyword.keyword?(option) and
         Enum.all?(option, fn
           {:types, types} -> Options.texts?(types)
           {limit, value} -> Keyword.has_key?(@limits, limit) and Options.positive?(value)
         end)
     end}
  end

  @typedoc "The types that an interface takes: by their data, and by a URL."
  @type types :: {[String.t()], [String.t()]}

  @doc "Checks the media of messages by the types of an interface and the limits of a model."
  @spec check(struct(), types(), [Model.message()]) :: :ok | {:error, ModelError.t()}
  def check(%module{media: option}, {types, urls}, messages) do
    limits = Map.new(Keyword.merge([types: types] ++ @limits, option))
    limits = Map.merge(limits, %{urls: urls, module: module})

    numbered =
      for {%{content: [_ | _] = parts}, number} <- Enum.with_index(messages, 1),
          do:
            {for({%Media{} = media, place} <- Enum.with_index(parts, 1), do: {media, place}),
             number}

    media = for {parts, number} <- numbered, {media, place} <- parts, do: {media, place, number}

    case Enum.find_value(media, &check_part(&1, limits)) do
      nil -> check_all(numbered, media, limits)
      reason -> {:error, %ModelError{kind: :media, reason: reason}}
    end
  end

  # A run drops its oldest messages then. A message may have the parts of several inputs, if there
  # was no reply to the first ones.
  defp check_all(numbered, media, %{max_parts: max_parts, max_total: max_total}) do
    total = media |> Enum.map(fn {media, _place, _number} -> bytes(media) end) |> Enum.sum()

    reason =
      Enum.find_value(numbered, fn {parts, number} ->
        if length(parts) > max_parts do
          "expected at most #{max_parts} images, files and audio in a message " <>
            "(:max_parts of :media), got: #{length(parts)} in message #{number}"
        end
      end) ||
        if total > max_total do
          "expected at most #{max_total} bytes of images, files and audio in a request " <>
            "(:max_total of :media), got: #{total}"
        end

    if reason, do: {:error, %ModelError{kind: :too_long, reason: reason}}, else: :ok
  end

  defp check_part({%{type: type} = media, place, number}, limits) do
    got = ", got: #{Media.describe(media)} in part #{place} of message #{number}"
    model = inspect(limits.module)

    cond do
      limits.types == [] ->
        "expected text alone for #{model}" <> got

      type not in limits.types ->
        "expected one of #{Enum.join(limits.types, ", ")} for #{model}" <> got

      match?({:url, _}, media.source) and type not in limits.urls ->
        "expected the data of #{type} for #{model}, which takes " <>
          if(limits.urls == [], do: "none", else: "only #{Enum.join(limits.urls, ", ")}") <>
          " by a URL" <> got

      bytes(media) > limits.max_bytes ->
        "expected at most #{limits.max_bytes} bytes in a part (:max_bytes of :media)" <> got

      true ->
        nil
    end
  end

  defp bytes(%{source: {:data, data}}), do: byte_size(data)
  defp bytes(_url), do: 0
end
