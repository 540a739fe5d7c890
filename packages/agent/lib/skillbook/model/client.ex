defmodule Skillbook.Model.Client do
  @moduledoc false
  # A model that calls a server: the behaviour of the modules of vendors, and their engine. It has
  # the options, the request, its repetition, the stream and the errors, which are the same for
  # all; the module of a vendor says how a request is written and how an answer is read.
  #
  # ## Add a vendor
  #
  # One module to write, `lib/skillbook/model/VENDOR.ex`, of about 100 lines and the docs of its
  # options; two to read, this one and `answer.ex`, whose functions make an answer of events (and
  # `messages.ex`, for conversations with tools):
  #
  #     defmodule Skillbook.Model.Vendor do
  #       use Skillbook.Model.Client,
  #         vendor: "vendor",
  #         home: {"https://api.vendor.example", "VENDOR_API_KEY"},
  #         path: "chat",
  #         missing: [:grammar],
  #         options: [structured: [:json_schema, :prompt]]
  #
  #       alias Skillbook.Model.{Answer, Client}
  #
  #       @impl true
  #       def body(model, messages, options), do: %{"model" => model.model, …}
  #
  #       @impl true
  #       def event(%{"text" => text}, answer), do: Answer.add_text(answer, text)
  #       def event(event, answer), do: Answer.without(answer, event, "text")
  #
  #       @impl true
  #       def whole(%{"text" => text}, answer), do: Answer.add_text(answer, text)
  #       def whole(_body, _answer), do: nil
  #     end
  #
  #   * `:vendor` - its name in `:opaque` of messages and for `--api` of the command line
  #   * `:provider` - its name in telemetry, if that is another one
  #   * `:home` - the vendor's own server, and the variable with its key: the defaults of `:url`
  #     and `:key`. `defaults/1` may say something else
  #   * `:media` - the media types that the interface takes: a list of those by their data, and
  #     one of those by a URL. Without it, text alone
  #   * `:missing` - the options of `Skillbook.Model.chat/4` that the interface does not have
  #   * `:path`, `:options` - as in `Skillbook.HTTP.Service`. `:extra` is added
  #
  # The content of a user's message is text or a list with media, for which `content.ex` has
  # functions. Another address or another header needs `endpoint/2` or `headers/3`, which get the
  # struct, so they may depend on an option. An interface like OpenAI's delegates `event/2` and
  # `whole/2` to `Skillbook.Model.OpenAI`. Names of errors that no vendor had so far are added to
  # `Skillbook.HTTP.Failure.reported/1`, a form of tools to `Skillbook.Tools.Shape`.
  #
  # Its test is a `use Skillbook.ModelConformance`, which has all that vendors have in common.
  # The types of its requests are those of the vendor's Python package, in the tables of
  # `test/support/vendors/{rules,checks,answers}.py`, which `test/support/vendors.ex` names;
  # without such a package the table has a schema of its own. `conversation_test.exs` needs its
  # `prompt/2`.
  #
  # For `--api` of the command line, name it in `cli/model_flags.ex` of `packages/cli` with its
  # test, and in `native/skillbook_cli/help/parts/model.txt`; and for readers in
  # `docs/models.md`.

  alias Skillbook.HTTP.Service
  alias Skillbook.Model.{Answer, Content, JSONSchema}
  alias Skillbook.Support.{JSON, Options}
  alias Skillbook.{Model, ModelError, Tools}

  @doc "The name of the interface, for `opaque` of messages."
  @callback vendor() :: String.t()

  @doc "The vendor's own server and the variable with its key."
  @callback home() :: {url :: String.t(), variable :: String.t()}

  @doc "The fields of a request. Those that are `nil` are left out."
  @callback body(struct(), [Model.message()], keyword()) :: map()

  @doc "Reads an event of a stream, with the functions of `Skillbook.Model.Answer`."
  @callback event(map(), Answer.t()) :: Answer.t()

  @doc "Reads an answer that is not streamed; `nil` if it is something else."
  @callback whole(term(), Answer.t()) :: Answer.t() | nil

  @doc "The model with all that its requests need, and the secret that no error may have."
  @callback secret(struct()) :: {:ok, struct(), Service.key()} | {:error, String.t()}

  @doc "The options of `Skillbook.Model.chat/4` that the interface does not have."
  @callback missing_options() :: [atom()]

  @doc false
  defmacro __using__(vendor) do
    more =
      quote do
        [
          media: {keyword(), [], unquote(Content).option()},
          extra: {map(), %{}, unquote(__MODULE__).extra()}
        ]
      end

    provider = vendor[:provider] || vendor[:vendor]

    quote do
      use Service,
        subject: "a model",
        path: unquote(vendor[:path]),
        nested: [:cache, :media],
        options: unquote(vendor[:options] ++ more)

      @behaviour Model
      @behaviour unquote(__MODULE__)

      @impl unquote(__MODULE__)
      def vendor, do: unquote(vendor[:vendor])

      @impl unquote(__MODULE__)
      def home, do: unquote(vendor[:home])

      @impl unquote(__MODULE__)
      def missing_options, do: unquote(vendor[:missing] || [])

      @impl Service
      def defaults(_url) do
        {url, variable} = home()
        [url: url, key: {:env, variable}]
      end

      @impl Model
      defdelegate chat(model, messages, options, on_text), to: unquote(__MODULE__)

      @impl Model
      def check(model, messages),
        do: unquote(Content).check(model, unquote(vendor[:media] || {[], []}), messages)

      @impl Model
      def tools?(_model), do: true

      @impl Model
      def provider(_model), do: unquote(provider)

      @impl unquote(__MODULE__)
      def secret(model), do: with({:ok, key} <- Service.key(model), do: {:ok, model, key})

      defoverridable defaults: 1, tools?: 1, provider: 1, secret: 1
    end
  end

  # Options of vendors

  @doc false
  def extra, do: {"a map with texts as keys", &(is_map(&1) and Options.texts?(Map.keys(&1)))}

  @doc "The option `:cache`, whose `ttl` is one of these, with further keys of its list."
  @spec cache([String.t()], [atom()]) :: {String.t(), (term() -> boolean())}
  def cache(ttls, more \\ []) do
    ttl = Enum.map_join(ttls, " or ", &~s([ttl: "#{&1}"]))
    more_text = Enum.map_join(more, &~s( or [#{&1}: "…"]))

    {"true, false or " <> ttl <> more_text,
     fn cache ->
       is_boolean(cache) or
         (Keyword.keyword?(cache) and Keyword.keys(cache) -- [:ttl | more] == [] and
            (cache[:ttl] == nil or cache[:ttl] in ttls) and
            Enum.all?(more, &(cache[&1] == nil or Options.text?(cache[&1]))))
     end}
  end

  # The request

  @doc "As `c:Skillbook.Model.chat/4`."
  @spec chat(struct(), [Model.message()], keyword(), (String.t() -> any())) ::
          {:ok, map()} | {:error, ModelError.t()}
  def chat(%module{} = model, messages, options, on_text) do
    with [] <- for(option <- module.missing_options(), options[option] != nil, do: option),
         {:ok, model, key} <- module.secret(model) do
      request = [
        deadline: Service.deadline(model, options[:timeout]),
        accept: "text/event-stream",
        compressed: false,
        on_retry: options[:on_retry]
      ]

      start = fn -> Answer.new(model, on_text, options[:on_tool_call]) end
      read = {start, &Answer.part/2, &Answer.result(&1, model.url)}
      Service.request(model, key, encode(model, messages, options), request, read)
    else
      [missing | _] ->
        reason =
          "the interface of #{inspect(module)} has no #{inspect(missing)}; leave the option out"

        {:error, %ModelError{kind: :refused, reason: reason}}

      {:error, reason} ->
        {:error, %ModelError{kind: :key, reason: reason}}
    end
  end

  @doc """
  The body of a request. Keys are sorted, so equal messages have equal bytes in each request, and
  the caches of servers find them.
  """
  @spec encode(struct(), [Model.message()], keyword()) :: String.t()
  def encode(%module{} = model, messages, options) do
    model
    |> module.body(messages, options)
    |> merge(model.extra)
    |> merge(options[:extra] || %{})
    |> Map.reject(fn {_name, value} -> value == nil end)
    |> JSON.encode()
  end

  # A map in `extra` adds to the fields of a map.
  defp merge(fields, extra) do
    Map.merge(fields, extra, fn
      _name, %{} = before, %{} = more -> merge(before, more)
      _name, _before, other -> other
    end)
  end

  # For the vendor's module

  @doc "The tools of a request in the vendor's shape, or `nil`: some refuse a list without any."
  @spec tools(keyword(), atom()) :: [map()] | nil
  def tools(options, shape) do
    tools = options[:tools] || []
    if tools != [], do: Tools.shapes(tools, shape)
  end

  @doc "The schema of the answer for the server, without the keywords that it refuses, or `nil`."
  @spec schema(struct(), keyword(), [String.t()]) :: map() | nil
  def schema(model, options, refused \\ [])
  def schema(%{structured: :prompt}, _options, _refused), do: nil

  def schema(_model, options, refused),
    do: with(%{} = schema <- options[:schema], do: JSONSchema.without(schema, refused))
end
