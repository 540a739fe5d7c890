defmodule Skillbook.MCP.Client.Skills do
  @moduledoc false
  # Checks an entry of `skills/list` and makes the page by which the model finds the skill. The
  # text is not in the page: it is fetched when the skill is read.
  #
  # Of the frontmatter only name and description are used, and fields that restrict. A field that
  # would give the skill more, such as `allowed-tools`, has no effect.

  alias Skillbook.Frontmatter
  alias Skillbook.MCP.Client.{Settings, SkillURI}
  alias Skillbook.Package.{Publish, Skill}
  alias Skillbook.Support.{External, JSON, UntilError}

  # Limits of the extension.
  @max_files 512
  @max_bytes 16_777_216
  @max_frontmatter 65_536
  @max_description 800

  @type file :: %{uri: String.t(), digest: String.t(), size: non_neg_integer()}

  @type t :: %__MODULE__{
          uri: String.t(),
          skill: String.t(),
          path: [String.t()],
          name: String.t() | nil,
          digest: String.t(),
          about: String.t(),
          frontmatter: map(),
          files: %{String.t() => file()},
          page: Skillbook.Source.Code.page() | nil
        }

  @enforce_keys [:uri, :skill, :path, :digest, :about, :frontmatter, :files]
  defstruct [:uri, :skill, :path, :name, :digest, :about, :frontmatter, :files, :page]

  @doc "Reads an entry, or says why it cannot be used."
  @spec read(term()) :: {:ok, t()} | {:error, String.t() | nil, String.t()}
  def read(%{"uri" => uri} = given) when is_binary(uri) do
    with {:ok, root, path} <- uri(uri),
         {:ok, frontmatter} <- frontmatter(given["frontmatter"], List.last(path)),
         {:ok, files} <- files(given["resources"], root, uri) do
      {:ok,
       %__MODULE__{
         uri: uri,
         skill: frontmatter["name"],
         path: path,
         digest: digest(uri, frontmatter, files),
         about: frontmatter["description"],
         frontmatter: frontmatter,
         files: files
       }}
    else
      {:error, reason} -> {:error, uri, reason}
    end
  end

  def read(_other), do: {:error, nil, "expected an object with a uri"}

  defp uri(uri) do
    with :error <- SkillURI.skill(uri),
         do: {:error, "expected a URI such as skill://path/name/SKILL.md, without `..` or file:"}
  end

  defp frontmatter(%{"name" => name, "description" => description} = frontmatter, last)
       when is_binary(description) do
    cond do
      not (is_binary(name) and Skill.plain?(name)) ->
        {:error, "expected a name of lowercase letters, digits and `-`, at most 64 characters"}

      name != last ->
        {:error, "expected the last part of the URI's path to be the skill's name"}

      String.trim(description) == "" ->
        {:error, "expected a description"}

      byte_size(JSON.encode(frontmatter)) > @max_frontmatter ->
        {:error, "expected a frontmatter of at most #{@max_frontmatter} bytes"}

      true ->
        {:ok, frontmatter}
    end
  end

  defp frontmatter(_other, _last),
    do: {:error, "expected a frontmatter with the texts name and description"}

  defp files("dynamic", _root, _uri),
    do: {:error, "its files are \"dynamic\": without digests nobody can approve them"}

  defp files(list, _root, _uri) when is_list(list) and length(list) > @max_files,
    do: {:error, "expected at most #{@max_files} files, got #{length(list)}"}

  defp files(list, root, uri) when is_list(list) do
    with {:ok, files} <- UntilError.map(list, &file(&1, root)) do
      paths = Enum.map(files, &elem(&1, 0))
      bytes = files |> Enum.map(fn {_path, file} -> file.size end) |> Enum.sum()

      cond do
        paths |> Enum.uniq_by(&folded/1) |> length() != length(paths) ->
          {:error, "expected each file once; names may not differ in case alone"}

        not Enum.any?(files, fn {path, file} -> path == "SKILL.md" and file.uri == uri end) ->
          {:error, "expected its SKILL.md among its resources"}

        bytes > @max_bytes ->
          {:error, "expected files of at most #{@max_bytes} bytes, got #{bytes}"}

        true ->
          {:ok, Map.new(files)}
      end
    end
  end

  defp files(_other, _root, _uri), do: {:error, "expected a list as its resources"}

  # On some systems these are the same file.
  defp folded(path), do: path |> String.normalize(:nfc) |> String.downcase()

  defp file(%{"uri" => uri, "digest" => digest, "size" => size}, root)
       when is_binary(digest) and is_integer(size) and size >= 0 do
    with {:path, {:ok, path}} <- {:path, SkillURI.file(uri, root)},
         {:digest, true} <- {:digest, digest =~ ~r/\Asha256:[0-9a-f]{64}\z/} do
      {:ok, {path, %{uri: uri, digest: digest, size: size}}}
    else
      {:path, :error} ->
        {:error, "expected the URIs of its resources to be in the skill's folder"}

      {:digest, false} ->
        {:error, "expected digests of the form sha256:, 64 hexadecimal digits"}
    end
  end

  defp file(_other, _root),
    do: {:error, "expected a uri, a digest and a size of each of its resources"}

  # The set that an approval is bound to: all of the frontmatter, and each file.
  defp digest(uri, frontmatter, files) do
    files = for {_path, file} <- files, do: [file.uri, file.digest, file.size]
    text = JSON.encode([uri, frontmatter, Enum.sort(files)])
    Publish.digest(text)
  end

  @doc """
  Gives skills their names: `label/skill`, or with the whole path if several have one name.
  """
  @spec named(Settings.t(), [t()]) :: [t()]
  def named(settings, skills) do
    counts = Enum.frequencies_by(skills, & &1.skill)

    for skill <- skills do
      path = if counts[skill.skill] == 1, do: skill.skill, else: Enum.join(skill.path, "/")
      skill = %{skill | name: "#{settings.label}/#{path}"}
      %{skill | page: page(settings, skill)}
    end
  end

  # The digest makes the page differ when a file does.
  defp page(settings, skill) do
    origin = "the MCP server #{settings.label}"
    about = External.line(skill.about, @max_description)

    fields =
      [
        {"name", skill.name},
        {"description", "A skill of #{origin} (external_input): #{about}"}
      ] ++ restrictions(skill.frontmatter)

    body = """
    The MCP server #{settings.label} has the text of this skill.
    `get_skill: #{skill.name}` fetches it and checks it (#{skill.digest}).
    """

    {"mcp:#{settings.label}/skills/#{skill.uri}", Frontmatter.write(fields, body), nil}
  end

  defp restrictions(frontmatter) do
    if(frontmatter["disable-model-invocation"] in [nil, false, "false"],
      do: [],
      else: [{"disable-model-invocation", true}]
    ) ++
      if(frontmatter["user-invocable"] in [nil, true, "true"],
        do: [],
        else: [{"user-invocable", false}]
      )
  end
end
