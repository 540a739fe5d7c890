defmodule Skillbook.Vault.Config do
  @moduledoc false
  # Validates the options of a book's vaults (`Skillbook.Vault` documents them) and finds vaults
  # by name.

  alias Skillbook.{OptionError, Part, Profile, VaultError}
  alias Skillbook.Support.{Options, UntilError}
  alias Skillbook.Vault.Folder

  @type t :: %__MODULE__{
          name: String.t(),
          labels: [String.t()],
          tenant: String.t() | nil,
          producer: {module(), keyword()} | nil,
          watch: boolean(),
          external: boolean(),
          files: pos_integer() | nil
        }

  @enforce_keys [:name]
  defstruct [:name, :producer, :tenant, :files, labels: [], watch: true, external: false]

  # Of a file that commands save or send, in bytes.
  @max_file 25 * 1024 * 1024

  @doc "The vault of a name."
  @spec find([t()], String.t()) :: {:ok, t()} | {:error, VaultError.t()}
  def find([], _name), do: {:error, %VaultError{kind: :no_vaults}}

  def find(vaults, name) do
    case Enum.find(vaults, &(&1.name == name)) do
      nil ->
        names = Enum.map(vaults, & &1.name)
        {:error, %VaultError{kind: :unknown_vault, name: name, available: names}}

      vault ->
        {:ok, vault}
    end
  end

  @doc "The vaults of the option `:vaults` of a book with a name, each a path or options."
  @spec list([Path.t() | keyword()], atom()) :: {:ok, [t()]} | {:error, OptionError.t()}
  def list(vaults, book) do
    with {:ok, vaults} <- UntilError.map(vaults, &new(&1, book)) do
      names = Enum.map(vaults, & &1.name)

      case names -- Enum.uniq(names) do
        [] -> {:ok, vaults}
        [name | _] -> {:error, invalid("a name that no other vault of the book has", name)}
      end
    end
  end

  defp new(path, book) when is_binary(path), do: new([path: path], book)

  defp new(options, book) do
    options = Options.keywords(options, [:watch, :drive, :files])

    with :ok <- Options.validate(options, "a vault", schema()),
         {:ok, producer} <- producer(options, book) do
      name = options[:name] || (options[:path] && Path.basename(Path.expand(options[:path])))

      cond do
        name == nil ->
          {:error, %OptionError{subject: "a vault", option: :name, problem: :missing}}

        not name?(name) ->
          {:error,
           invalid("letters, digits, blanks, dots, _ and -, at most 100 characters", name)}

        options[:files] not in [nil, false] and options[:path] == nil ->
          expected = "false for a vault without :path"
          problem = {:invalid, expected, options[:files]}
          {:error, %OptionError{subject: "a vault", option: :files, problem: problem}}

        true ->
          labels = Keyword.get(options, :labels, [])

          {:ok,
           %__MODULE__{
             name: name,
             producer: producer,
             labels: labels,
             tenant: options[:tenant],
             watch: options[:watch] != false,
             external: options[:drive] != nil,
             files: files(options[:files])
           }}
      end
    end
  end

  defp producer(options, book) do
    poll = if is_list(options[:watch]), do: options[:watch], else: []

    if path = options[:path] do
      {:ok, {Folder, [path: Path.expand(path)] ++ poll}}
    else
      with :other <- Part.first(Part.installed(), :producer, [options, book, poll]),
           do: {:ok, options[:producer]}
    end
  end

  defp files(true), do: @max_file
  defp files(max_bytes: max), do: max
  defp files(_none), do: nil

  defp invalid(expected, value),
    do: %OptionError{subject: "a vault", option: :name, problem: {:invalid, expected, value}}

  defp name?(name), do: Regex.match?(~r/\A[\p{L}\p{N}_][\p{L}\p{N}\p{M}_ .\-]{0,99}\z/u, name)

  defp schema do
    [
      path: {"a folder", &Options.path?/1},
      name: {"text", &Options.text?/1},
      labels: {"a list of texts", &Options.texts?/1},
      tenant: {"text of 1 to 200 bytes or nil", &(is_nil(&1) or Profile.name?(&1))},
      producer: {"{module, options}", &producer?/1},
      drive: {"[profile: id, folder: id]", &Keyword.keyword?/1},
      watch: {"a boolean or [poll: milliseconds]", &watch?/1},
      files: {"a boolean or [max_bytes: number]", &files?/1}
    ]
  end

  defp producer?({module, options}), do: is_atom(module) and Keyword.keyword?(options)
  defp producer?(_other), do: false

  defp files?(max_bytes: max), do: Options.positive?(max)
  defp files?(value), do: is_boolean(value)

  defp watch?(poll: interval), do: Options.milliseconds?(interval)
  defp watch?(value), do: is_boolean(value)
end
