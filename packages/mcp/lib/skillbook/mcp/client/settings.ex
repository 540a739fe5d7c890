defmodule Skillbook.MCP.Client.Settings do
  @moduledoc false
  # The options of an MCP server that is a source: `{:mcp, url | command, options}`.
  #
  # Secrets stay functions or names of environment variables, and are read for each request.

  alias Skillbook.HTTP.Addresses
  alias Skillbook.Support.{Options, Secret}
  alias Skillbook.{Native, OptionError, Profile}

  @subject "an MCP source"
  @max_label 32
  # The options of `Skillbook.HTTP` that have a meaning for a server.
  @http [:adapter, :connect_timeout, :cacertfile, :protocol, :proxy]

  @enforce_keys [:label, :place]
  @derive {Inspect, only: [:label]}
  defstruct [
    :label,
    :place,
    :token,
    :oauth,
    :headers,
    :cd,
    :stderr,
    :lock,
    :elicit,
    :book,
    # The profile that calls, for a server with a sign-in of each caller. Without one, the server
    # is asked for its lists.
    :caller,
    env: [],
    tools: true,
    prompts: true,
    skills: true,
    read: [],
    approve: :ask,
    timeout: 30_000,
    refresh: 300_000,
    http: [],
    trust: :low,
    tenant: nil,
    labels: [],
    optional: true,
    max_tools: 500,
    max_skills: 1_000,
    max_pages: 100,
    max_message: 8_388_608,
    max_cache: 33_554_432
  ]

  @typedoc "Where the server is: its URL, or the command that starts it."
  @type place :: {:url, String.t()} | {:command, [String.t(), ...]}

  @type t :: %__MODULE__{label: String.t(), place: place()}

  @doc "Reads the options of a server, or returns the first that is wrong."
  @spec new(String.t() | [String.t()], keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(place, options) do
    options = Options.keywords(options)

    with :ok <- validate(options),
         {:ok, place} <- place(place),
         :ok <- required(options, :label),
         :ok <- fits(place, options),
         {:ok, oauth} <- oauth(options[:oauth] || false) do
      options = Keyword.put(expand(options), :oauth, oauth)
      {:ok, struct!(%__MODULE__{label: nil, place: place}, options)}
    end
  end

  # The sign-in, with the profile whose connection it is; `nil` without one.
  defp oauth(false), do: {:ok, nil}
  defp oauth(true), do: oauth([])

  defp oauth(options) do
    subject = "the :oauth of #{@subject}"

    with :ok <- hide(Options.validate(options, subject, sign_in()), [:client_secret]),
         :ok <- needs(options, subject, :client_secret, :client_id),
         :ok <- needs(options, subject, :client_id, :issuer),
         :ok <- lists(options, subject),
         do: {:ok, Keyword.put_new(options, :profile, "default")}
  end

  # The sign-in of one profile is for the lists too.
  defp lists(options, subject) do
    if options[:list_as] == nil or options[:profile] == :caller do
      :ok
    else
      expected = "no option :list_as without profile: :caller,"
      problem = {:invalid, expected, options[:list_as]}
      {:error, %OptionError{subject: subject, option: :list_as, problem: problem}}
    end
  end

  @doc "The settings for the requests of a profile, which matter for a sign-in of each caller."
  @spec called_by(t(), Profile.t()) :: t()
  def called_by(%{oauth: oauth} = settings, profile) do
    if oauth != nil and oauth[:profile] == :caller,
      do: %{settings | caller: profile},
      else: settings
  end

  @doc "The id of the profile with whose connection the server is asked for its lists."
  @spec lists_as(t()) :: String.t()
  def lists_as(%{oauth: oauth}) do
    case oauth[:profile] do
      :caller -> oauth[:list_as] || "default"
      id -> id
    end
  end

  # The credentials of a client are for the authorization server that gave them.
  defp needs(options, subject, option, other) do
    if Keyword.has_key?(options, option) and not Keyword.has_key?(options, other),
      do: {:error, %OptionError{subject: subject, option: other, problem: :missing}},
      else: :ok
  end

  defp sign_in do
    [
      profile: {"the id of a profile or :caller", &(&1 == :caller or Profile.name?(&1))},
      list_as: {"the id of a profile", &Profile.name?/1},
      client_id: {"text", &Options.text?/1},
      client_secret: {Secret.expected(), &Secret.valid?/1},
      issuer: {"an https URL, http only on this machine", &url?/1},
      client_metadata: {"an https URL with a path", &document?/1}
    ]
  end

  defp document?(url) do
    url?(url) and
      match?(%{scheme: "https", path: "/" <> <<_, _::binary>>, fragment: nil}, URI.parse(url))
  end

  # A secret that was written in place of its name must not reach a log.
  defp validate(options) do
    options
    |> Options.validate(@subject, schema())
    |> hide([:token, :headers, :env, :http, :oauth])
  end

  defp hide({:error, %{problem: {:invalid, expected, _value}} = error} = result, secret) do
    if error.option in secret,
      do: {:error, %{error | problem: {:invalid, expected, :hidden}}},
      else: result
  end

  defp hide(result, _secret), do: result

  @doc "The place as one text, without the query of a URL: it names the server in the lock file."
  @spec place_text(t()) :: String.t()
  def place_text(%{place: {:url, url}}),
    do: to_string(%{URI.parse(url) | query: nil, fragment: nil})

  def place_text(%{place: {:command, words}}), do: Enum.join(words, " ")

  @doc "Whether a tool of this name is wanted."
  @spec tool?(t(), String.t()) :: boolean()
  def tool?(%{tools: tools}, _name) when is_boolean(tools), do: tools
  def tool?(%{tools: globs}, name), do: match_any?(globs, name)

  @doc "Whether a prompt of this name is wanted."
  @spec prompt?(t(), String.t()) :: boolean()
  def prompt?(%{prompts: prompts}, _name) when is_boolean(prompts), do: prompts
  def prompt?(%{prompts: globs}, name), do: match_any?(globs, name)

  @doc "Whether the operator says that a tool or prompt only reads."
  @spec reads?(t(), String.t()) :: boolean()
  def reads?(%{read: globs}, name), do: match_any?(globs, name)

  # The names have no characters with a meaning in globs but `*` and `?` themselves.
  defp match_any?(globs, name) do
    Enum.any?(globs, fn glob ->
      pattern =
        glob |> Regex.escape() |> String.replace("\\*", ".*") |> String.replace("\\?", ".")

      Regex.match?(Regex.compile!("\\A" <> pattern <> "\\z", "su"), name)
    end)
  end

  defp required(options, option) do
    if options[option],
      do: :ok,
      else: {:error, %OptionError{subject: @subject, option: option, problem: :missing}}
  end

  defp place(url) when is_binary(url),
    do: if(url?(url), do: {:ok, {:url, url}}, else: invalid(url))

  defp place([program | _] = command) do
    if Enum.all?(command, &(is_binary(&1) and String.valid?(&1) and not (&1 =~ "\0"))) and
         program != "",
       do: {:ok, {:command, command}},
       else: invalid(command)
  end

  defp place(other), do: invalid(other)

  defp url?(url) do
    with true <- Options.text?(url) and not (url =~ ~r/[\s\x00-\x1f\x7f]/),
         {:ok, %URI{scheme: scheme, host: host, userinfo: nil}} when host not in [nil, ""] <-
           URI.new(url) do
      scheme == "https" or (scheme == "http" and Addresses.loopback?(host))
    else
      _ -> false
    end
  end

  # A token must not travel in clear text.

  defp invalid(place) do
    expected =
      "{:mcp, url, options} with an https URL, http only on this machine, or " <>
        "{:mcp, [program | arguments], options}"

    shown = if is_binary(place), do: place |> String.split("?") |> hd(), else: place
    {:error, %OptionError{subject: @subject, option: nil, problem: {:invalid, expected, shown}}}
  end

  # Options that have a meaning for the other kind of place only.
  defp fits(place, options) do
    {kind, others} =
      case place do
        {:url, _} -> {"a server at a URL", [:env, :cd, :stderr]}
        {:command, _} -> {"a server that is a command", [:token, :headers, :http, :oauth]}
      end

    # Nobody could say which of the two is sent.
    {kind, others} =
      if options[:oauth] not in [nil, false] and Keyword.has_key?(options, :token),
        do: {"a server with :oauth", [:token]},
        else: {kind, others}

    case Enum.find(others, &Keyword.has_key?(options, &1)) do
      nil ->
        :ok

      option ->
        problem = {:invalid, "no option :#{option} for #{kind},", :hidden}
        {:error, %OptionError{subject: @subject, option: option, problem: problem}}
    end
  end

  defp expand(options) do
    for {key, value} <- options,
        do: {key, if(key in [:lock, :cd, :stderr], do: Path.expand(value), else: value)}
  end

  defp schema do
    globs = {"a list of globs", &globs?/1}
    positive = {"a positive number", &Options.positive?/1}
    milliseconds = {"a number of milliseconds", &Options.milliseconds?/1}

    [
      label: {"text of at most #{@max_label} lowercase letters, digits and `-`", &label?/1},
      token: {Secret.expected(), &Secret.valid?/1},
      oauth: {"true, false or a list of options", &(is_boolean(&1) or Keyword.keyword?(&1))},
      headers:
        {"a list of names with {:env, name} or functions, or a function that returns a list " <>
           "of names and values", &headers?/1},
      env: {"a map or a list of names with texts, {:env, name} or functions", &env?/1},
      cd: {"a folder", &Options.path?/1},
      stderr: {"a file", &Options.path?/1},
      tools: {"true, false or a list of globs", &(is_boolean(&1) or globs?(&1))},
      prompts: {"true, false or a list of globs", &(is_boolean(&1) or globs?(&1))},
      skills: {"true or false", &is_boolean/1},
      read: globs,
      approve: {":ask, :all or a function of one argument", &approve?/1},
      lock: {"a file", &Options.path?/1},
      elicit: {"a function of one argument or nil", &(is_nil(&1) or is_function(&1, 1))},
      timeout: milliseconds,
      refresh: milliseconds,
      http: {"the options #{Enum.map_join(@http, ", ", &inspect/1)}", &http?/1},
      trust: {":low, since a server's texts are a stranger's, or :none", &(&1 in [:low, :none])},
      labels: {"a list of texts", &Options.texts?/1},
      tenant: {"text of 1 to 200 bytes or nil", &(is_nil(&1) or Profile.name?(&1))},
      optional: {"a boolean", &is_boolean/1},
      max_tools: positive,
      max_skills: positive,
      max_pages: positive,
      max_message: positive,
      max_cache: positive
    ]
  end

  @doc "Whether a text can be a label."
  @spec label?(term()) :: boolean()
  def label?(label),
    do:
      is_binary(label) and byte_size(label) <= @max_label and
        label =~ ~r/\A[a-z0-9]+(-[a-z0-9]+)*\z/

  defp http?(options), do: Keyword.keyword?(options) and Keyword.keys(options) -- @http == []
  defp approve?(value), do: value in [:ask, :all] or is_function(value, 1)
  defp globs?(globs), do: Options.texts?(globs) and Native.globs_check(globs) == :ok

  defp headers?(headers) when is_function(headers, 0), do: true

  defp headers?(headers) do
    is_list(headers) and
      Enum.all?(headers, fn
        {name, secret} -> is_binary(name) and Secret.valid?(secret)
        _ -> false
      end)
  end

  defp env?(env) when is_map(env), do: not is_struct(env) and env?(Map.to_list(env))

  defp env?(env) do
    is_list(env) and
      Enum.all?(env, fn
        {name, value} -> Options.text?(name) and (is_binary(value) or Secret.valid?(value))
        _ -> false
      end)
  end
end
