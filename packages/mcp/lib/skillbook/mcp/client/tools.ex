defmodule Skillbook.MCP.Client.Tools do
  @moduledoc false
  # Makes a command of a tool: `label.tool`, or of a prompt. Its page has only fields that are
  # written here; texts of the server are quoted in it.
  #
  # Its `input_schema` is the server's, so a property becomes a flag, and a call has the arguments
  # that the schema allows. The arguments of a prompt are texts.

  alias Skillbook.MCP.Client.{HTTP, Settings}
  alias Skillbook.Package.Publish
  alias Skillbook.Frontmatter
  alias Skillbook.Support.{External, JSON, UntilError}

  @max_name 128
  @max_definition 262_144
  @max_description 600
  @max_body 4_000

  @max_arguments 100

  @type kind :: :tool | :prompt

  @type t :: %__MODULE__{
          kind: kind(),
          tool: String.t(),
          name: String.t(),
          digest: String.t(),
          about: String.t(),
          headers: [{[String.t()], String.t()}],
          page: Skillbook.Source.Code.page()
        }

  @enforce_keys [:kind, :tool, :name, :digest, :about, :headers, :page]
  defstruct [:kind, :tool, :name, :digest, :about, :headers, :page]

  @doc """
  Reads the definition of a tool, or says why it cannot be used.

      iex> {:ok, settings} = Skillbook.MCP.Client.Settings.new("https://a.example", label: "a")
      iex> {:ok, tool} = Skillbook.MCP.Client.Tools.read(settings, %{
      ...>   "name" => "find", "inputSchema" => %{"type" => "object"}})
      iex> {tool.kind, tool.name}
      {:tool, "a.find"}
  """
  @spec read(Settings.t(), term()) :: {:ok, t()} | {:error, String.t() | nil, String.t()}
  def read(settings, %{"name" => tool, "inputSchema" => %{} = schema} = given)
      when is_binary(tool) do
    fields = ~w(name title description inputSchema outputSchema annotations)

    with {:ok, headers} <- headers(settings, schema) |> named(tool),
         do: make(settings, :tool, Map.take(given, fields), schema, headers)
  end

  def read(_settings, %{"name" => tool}) when is_binary(tool),
    do: {:error, tool, "expected an object as its inputSchema"}

  def read(_settings, _other), do: {:error, nil, "expected an object with a name"}

  @doc """
  Reads the definition of a prompt. Its command is `label.prompt`, or `label.prompt.NAME` if a
  tool has its name.
  """
  @spec read_prompt(Settings.t(), term(), [t()]) ::
          {:ok, t()} | {:error, String.t() | nil, String.t()}
  def read_prompt(settings, %{"name" => prompt} = given, tools) when is_binary(prompt) do
    with {:ok, schema} <- arguments(given["arguments"] || []) |> named(prompt),
         given = Map.take(given, ~w(name title description arguments)),
         {:ok, made} <- make(settings, :prompt, given, schema, []) do
      if Enum.any?(tools, &(&1.name == made.name)),
        do:
          {:ok, with_page(settings, %{made | name: other_name(settings, prompt)}, schema, given)},
        else: {:ok, made}
    end
  end

  def read_prompt(_settings, _other, _tools),
    do: {:error, nil, "expected an object with a name"}

  defp other_name(settings, prompt), do: "#{settings.label}.prompt.#{prompt}"

  defp named({:error, reason}, name), do: {:error, name, reason}
  defp named(ok, _name), do: ok

  defp arguments(list) when is_list(list) and length(list) <= @max_arguments do
    names = for %{"name" => name} <- list, is_binary(name), do: name

    if length(names) == length(list) and Enum.uniq(names) == names do
      properties = Map.new(list, &{&1["name"], argument(&1)})
      required = for %{"name" => name, "required" => true} <- list, do: name
      schema = %{"type" => "object", "properties" => properties, "required" => required}
      {:ok, Map.put(schema, "additionalProperties", false)}
    else
      {:error, "expected a name of each argument, each once"}
    end
  end

  defp arguments(_other), do: {:error, "expected a list of at most #{@max_arguments} arguments"}

  defp argument(given) do
    case text(given["description"]) || text(given["title"]) do
      nil -> %{"type" => "string"}
      about -> %{"type" => "string", "description" => about}
    end
  end

  defp make(settings, kind, given, schema, headers) do
    tool = given["name"]
    text = JSON.encode(given)

    with :ok <- name(tool),
         :ok <- size(text),
         :ok <- object(schema) do
      made = %__MODULE__{
        kind: kind,
        tool: tool,
        name: "#{settings.label}.#{tool}",
        digest: Publish.digest(text),
        about: text(given["description"]) || text(given["title"]) || "",
        headers: headers,
        page: nil
      }

      {:ok, with_page(settings, made, schema, given)}
    else
      {:error, reason} -> {:error, tool, reason}
    end
  end

  @doc "The path of the page of a tool or a prompt."
  @spec path(Settings.t(), kind(), String.t()) :: String.t()
  def path(settings, kind, tool), do: "mcp:#{settings.label}/#{kind}s/#{tool}"

  defp name(tool) do
    cond do
      byte_size(tool) > @max_name ->
        {:error, "expected a name of at most #{@max_name} characters"}

      not (tool =~ ~r/\A[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\z/) ->
        {:error, "expected a name of letters, digits, `_`, `-` and dots between them"}

      tool in ["all", "help"] ->
        {:error, "the names `all` and `help` are those of get_skill"}

      true ->
        :ok
    end
  end

  defp size(text) when byte_size(text) <= @max_definition, do: :ok
  defp size(_text), do: {:error, "expected a definition of at most #{@max_definition} bytes"}

  defp object(%{"type" => "object"}), do: :ok
  defp object(_schema), do: {:error, "expected an inputSchema of the type \"object\""}

  # Headers that mirror arguments

  defp headers(%{place: {:command, _}}, _schema), do: {:ok, []}

  defp headers(_settings, schema) do
    with {:ok, found} <- annotated(schema, [], []),
         :ok <- same_count(schema, found) do
      names = Enum.map(found, fn {_path, name} -> String.downcase(name) end)

      if Enum.uniq(names) == names,
        do: {:ok, found},
        else: {:error, "expected each x-mcp-header once"}
    end
  end

  # Only properties of properties may have one.
  defp annotated(%{"properties" => %{} = properties}, path, found) do
    UntilError.reduce(Enum.sort(properties), found, fn {name, schema}, found ->
      with {:ok, found} <- own_header(schema, path ++ [name], found),
           do: annotated(schema, path ++ [name], found)
    end)
  end

  defp annotated(_schema, _path, found), do: {:ok, found}

  defp own_header(%{"x-mcp-header" => name} = schema, path, found) do
    if is_binary(name) and name =~ ~r/\A[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}\z/ and
         schema["type"] in ~w(string integer boolean),
       do: {:ok, [{path, name} | found]},
       else: {:error, "expected an x-mcp-header that is a name, at a text, integer or boolean"}
  end

  defp own_header(_schema, _path, found), do: {:ok, found}

  defp same_count(schema, found) do
    if count([schema], 0) == length(found),
      do: :ok,
      else: {:error, "expected x-mcp-header only at properties"}
  end

  # A property may have this name too.
  defp count([], count), do: count

  defp count([%{} = map | rest], count) do
    own = if is_binary(map["x-mcp-header"]), do: 1, else: 0
    count(Map.values(map) ++ rest, count + own)
  end

  defp count([list | rest], count) when is_list(list), do: count(list ++ rest, count)
  defp count([_other | rest], count), do: count(rest, count)

  @doc "The headers of a call with these arguments."
  @spec call_headers(t(), map()) :: [{String.t(), String.t()}]
  def call_headers(%{headers: headers}, arguments) do
    for {path, name} <- headers,
        value = value(arguments, path),
        is_binary(value) or is_integer(value) or value in [true, false] do
      {"mcp-param-" <> name, HTTP.header_value(to_string(value))}
    end
  end

  # `false` is a value, and `for` would leave it out.
  defp value(arguments, path) do
    found =
      Enum.reduce_while(path, arguments, fn name, map ->
        case map do
          %{^name => value} -> {:cont, value}
          _ -> {:halt, nil}
        end
      end)

    if found == false, do: "false", else: found
  end

  # The page

  defp with_page(settings, made, schema, given),
    do: %{made | page: page(settings, made, schema, given["annotations"])}

  defp page(settings, made, schema, annotations) do
    about =
      if made.about == "", do: "no description", else: External.line(made.about, @max_description)

    origin = "the MCP server #{settings.label}"

    fields = [
      {"name", made.name},
      {"description", "A #{made.kind} of #{origin} (external_input): #{about}"},
      {"effects", Atom.to_string(effects(settings, made.tool, annotations))},
      {"timeout", "#{settings.timeout + 1_000}ms"},
      {"input_schema", IO.iodata_to_binary(JSON.encode(schema))},
      {"handler", handler(settings)}
    ]

    text = if made.about == "", do: "none", else: made.about

    does = if made.kind == :tool, do: "runs this tool", else: "writes the text of this prompt"

    body =
      "The MCP server #{settings.label} #{does}.\n\n" <>
        External.block("its description", text, max: @max_body) <> "\n"

    {path(settings, made.kind, made.tool), Frontmatter.write(fields, body), nil}
  end

  @doc "The name of the handler in these pages. Only the catalog of the server knows it."
  @spec handler(Settings.t()) :: String.t()
  def handler(settings), do: "mcp #{settings.label}"

  # A hint of the server can only make a tool more restricted.
  defp effects(settings, tool, annotations) do
    hints = if is_map(annotations), do: annotations, else: %{}
    writes? = hints["readOnlyHint"] == false or hints["destructiveHint"] == true
    if Settings.reads?(settings, tool) and not writes?, do: :read, else: :write
  end

  defp text(value), do: if(is_binary(value) and String.trim(value) != "", do: value)
end
