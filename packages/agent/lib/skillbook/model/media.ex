defmodule Skillbook.Model.Media do
  @moduledoc """
  An image, a file or audio in a message of a user.

      photo = Skillbook.Model.Media.new!(type: "image/png", data: bytes, name: "whiteboard.png")
      Skillbook.Agent.run(MyApp.Skills, ["What is on this whiteboard?", photo], model: model)

  The content of such a message is a list of texts and media, in their order. A URL is passed on
  to the model's server, which fetches it; Skillbook never does. A run sends the media of a
  conversation with each request, until a compaction removes their message.

  Which types a model takes depends on its interface; see
  [models](docs/models.md#images-files-and-audio).

  ## Fields

    * `:type` - the media type, such as `"image/png"`, `"application/pdf"` or `"audio/wav"`
    * `:source` - `{:data, bytes}` or `{:url, url}`
    * `:name` - the name of the file, or `nil`. Some servers show it to the model

  ## Examples

      iex> Skillbook.Model.Media.new!(type: "image/png", data: <<0, 1, 2>>, name: "dots.png")
      #Skillbook.Model.Media<"dots.png", image/png, 3 bytes>

      iex> Skillbook.Model.Media.new!(type: "application/pdf", url: "https://example.com/a?k=1")
      #Skillbook.Model.Media<application/pdf, from example.com>

      iex> {:error, error} = Skillbook.Model.Media.new(type: "png", data: <<0, 1, 2>>)
      iex> Exception.message(error)
      ~s(expected a media type such as "image/png" as the option :type of a part of a ) <>
        ~s(message, got: "png")
  """

  alias Skillbook.OptionError
  alias Skillbook.Support.Options

  @type t :: %__MODULE__{
          type: String.t(),
          source: {:data, binary()} | {:url, String.t()},
          name: String.t() | nil
        }

  @enforce_keys [:type, :source]
  defstruct [:type, :source, :name]

  @subject "a part of a message"
  # Bytes of a URL, and characters of a name.
  @max_url 8_192
  @max_name 255

  @doc """
  Builds a part of a message.

  ## Options

    * `:type` - the media type. Required
    * `:data` - the bytes. Either these or a URL is required. Those of a type `text/…` are UTF-8
    * `:url` - an https URL without a login, which the model's server can fetch
    * `:name` - the name of the file, one line of up to #{@max_name} characters
  """
  @spec new(Skillbook.options()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options) do
    options = Options.keywords(options)

    with :ok <- Options.validate(options, @subject, schema()),
         {:ok, type} <- required(options, :type),
         {:ok, source} <- source(options[:data], options[:url], type),
         do: {:ok, %__MODULE__{type: type, source: source, name: options[:name]}}
  end

  @doc "Like `new/1`, but raises the error."
  @spec new!(Skillbook.options()) :: t()
  def new!(options) do
    case new(options) do
      {:ok, media} -> media
      {:error, error} -> raise error
    end
  end

  defp required(options, option) do
    with :error <- Keyword.fetch(options, option), do: wrong(option, :missing)
  end

  defp source(nil, nil, _type),
    do: wrong(:data, {:invalid, "bytes, or a URL as :url instead,", nil})

  defp source(nil, url, _type), do: {:ok, {:url, url}}

  defp source(data, nil, type) do
    if not String.starts_with?(type, "text/") or String.valid?(data),
      do: {:ok, {:data, data}},
      else: wrong(:data, {:invalid, "UTF-8 for the type #{type}", "other bytes"})
  end

  defp source(_data, url, _type), do: wrong(:url, {:invalid, "no URL beside :data", url})

  defp wrong(option, problem),
    do: {:error, %OptionError{subject: @subject, option: option, problem: problem}}

  defp schema do
    [
      type: {~s(a media type such as "image/png"), &type?/1},
      data: {"bytes", &(is_binary(&1) and &1 != "")},
      url: {"an https URL without a login, of at most #{@max_url} bytes", &url?/1},
      name: {"one line of at most #{@max_name} characters, or nil", &(is_nil(&1) or name?(&1))}
    ]
  end

  defp type?(type), do: is_binary(type) and type =~ ~r/\A[a-z]{1,40}\/[a-z0-9][a-z0-9.+-]{0,99}\z/

  defp url?(url) do
    Options.text?(url) and byte_size(url) <= @max_url and not (url =~ ~r/[\s\x00-\x1f\x7f]/) and
      match?(
        {:ok, %URI{scheme: "https", host: host, userinfo: nil}} when host not in [nil, ""],
        URI.new(url)
      )
  end

  defp name?(name),
    do:
      Options.text?(name) and String.length(name) <= @max_name and
        not (name =~ ~r/[\p{C}\p{Zl}\p{Zp}]/u)

  @doc false
  # Its name, type and size in words, which stand for the bytes wherever only text is wanted.
  @spec describe(t()) :: String.t()
  def describe(%__MODULE__{type: type, source: source, name: name}) do
    name = if name, do: [inspect(name)], else: []
    Enum.join(name ++ [type, size(source)], ", ")
  end

  defp size({:data, data}), do: "#{byte_size(data)} bytes"
  # The rest of a URL may be a secret.
  defp size({:url, url}), do: "from #{URI.parse(url).host}"

  defimpl Inspect do
    def inspect(media, _options),
      do: "#Skillbook.Model.Media<#{Skillbook.Model.Media.describe(media)}>"
  end
end
