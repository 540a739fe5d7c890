defmodule Skillbook.CLI.Accounts do
  @moduledoc false
  # The accounts of the command line: a JSON file, environment variables, and the file with the
  # key that encrypts tokens. The application's own books do not use them.

  alias Skillbook.Connections.{Cipher, Vendor}
  alias Skillbook.Document
  alias Skillbook.Support.{JSON, PrivateFile, UntilError}

  @file_name ".skillbook/connections.json"
  @key_name "connections.key"
  @key_variable "SKILLBOOK_CONNECTIONS_KEY"
  # Bytes of a file.
  @max_bytes 64 * 1024
  @max_accounts 100

  # Options that all accounts have, besides `vendor` and those of the vendor.
  @common ~w(profiles services url)a
  # Texts that are atoms in the options of vendors.
  @words %{"implicit" => :implicit, "starttls" => :starttls, "password" => :password}
         |> Map.put("xoauth2", :xoauth2)
  @nested ~w(host port tls)a

  @doc "The path of the file with the accounts."
  @spec path() :: Path.t()
  def path do
    case System.get_env("SKILLBOOK_CONNECTIONS", "") do
      "" -> @file_name
      path -> path
    end
  end

  @doc "The path of the file with the key."
  @spec key_path() :: Path.t()
  def key_path, do: Path.join(Path.dirname(path()), @key_name)

  @doc """
  The option `:connections` of the command line's book; `nil` if there are no accounts, and no key
  for the tokens of MCP servers.
  """
  @spec read() :: {:ok, keyword() | nil} | {:error, String.t()}
  def read do
    with {:ok, fields} <- fields(),
         {:ok, accounts} <- accounts(Map.merge(environment(), fields)),
         {:ok, keys} <- keys() do
      if accounts == [] and keys == [], do: {:ok, nil}, else: {:ok, [{:key, keys} | accounts]}
    end
  end

  defp environment do
    google = %{
      "client_id" => %{"env" => "SKILLBOOK_GOOGLE_CLIENT_ID"},
      "client_secret" => %{"env" => "SKILLBOOK_GOOGLE_CLIENT_SECRET"}
    }

    hubspot = %{"token" => %{"env" => "SKILLBOOK_HUBSPOT_TOKEN"}}

    for {name, fields} <- [{"google", google}, {"hubspot", hubspot}],
        Enum.all?(fields, fn {_, %{"env" => variable}} -> set?(variable) end),
        into: %{},
        do: {name, fields}
  end

  defp set?(variable), do: System.get_env(variable, "") != ""

  # The file

  @doc "The fields of the file, by the names of the accounts."
  @spec fields() :: {:ok, map()} | {:error, String.t()}
  def fields do
    path = path()

    with {:ok, text} <- read_file(path),
         :ok <- check_owner(path),
         {:ok, %{} = fields} when map_size(fields) <= @max_accounts <- JSON.decode(text) do
      {:ok, fields}
    else
      :missing -> {:ok, %{}}
      {:error, %{__exception__: true} = error} -> wrong(path, Exception.message(error))
      {:error, reason} -> wrong(path, reason)
      {:ok, _other} -> wrong(path, "expected an object with at most #{@max_accounts} accounts")
    end
  end

  # The file names secrets and the hosts that get them, and a folder from a stranger may have one.
  # Version control and archives keep no such mode.
  defp check_owner(path) do
    if path == @file_name, do: check_mode(path, "it; if you trust it,"), else: :ok
  end

  defp wrong(path, reason), do: {:error, "#{path}: #{reason}"}

  defp read_file(path) do
    case File.stat(path) do
      {:ok, %{size: size}} when size > @max_bytes ->
        {:error, "it has more than #{@max_bytes} bytes"}

      {:ok, _stat} ->
        with {:error, reason} <- File.read(path), do: file_error(reason)

      {:error, :enoent} ->
        :missing

      {:error, reason} ->
        file_error(reason)
    end
  end

  defp file_error(reason), do: {:error, to_string(:file.format_error(reason))}

  @doc "Whether there is an account of this name, and Google's has a client or a service account."
  @spec check(String.t()) :: :ok | {:error, String.t()}
  def check(name) do
    with {:ok, fields} <- fields() do
      accounts = Map.merge(environment(), fields)

      case accounts do
        %{^name => %{} = account} -> check_client(name, account)
        %{^name => _other} -> :ok
        _ -> {:error, "there is no account #{inspect(name)}#{near(accounts)}; #{first(name)}"}
      end
    end
  end

  defp check_client(name, account) do
    google? = Map.get(account, "vendor", name) == "google"
    client? = Enum.any?(~w(client_id service_account), &is_map_key(account, &1))

    if google? and not client?,
      do: {:error, "the account #{inspect(name)} has no client yet; #{first("google", name)}"},
      else: :ok
  end

  defp near(accounts) when accounts == %{}, do: ""

  defp near(accounts),
    do: " (there is #{accounts |> Map.keys() |> Enum.sort() |> Enum.join(", ")})"

  defp first(vendor), do: first(vendor, vendor)

  defp first("google", name) do
    "the first time, give the file of Google's console: " <>
      "`skillbook connect #{name} --client-secret-file FILE`"
  end

  defp first("hubspot", _name), do: "set SKILLBOOK_HUBSPOT_TOKEN, or add it to #{path()}"
  defp first(_vendor, _name), do: "add it to #{path()}; `skillbook connect --help` shows how"

  @doc "Adds an account to the file, or changes fields of one."
  @spec save(String.t(), map()) :: :ok | {:error, String.t()}
  def save(name, new) do
    with {:ok, fields} <- fields() do
      fields = Map.update(fields, name, new, &Map.merge(&1, new))
      write(path(), JSON.encode(fields) <> "\n")
    end
  end

  # Only the owner reads it: `Document` keeps the mode of a file that is there.
  defp write(path, content) do
    folder = Path.dirname(Path.expand(path))

    with :ok <- PrivateFile.mkdir_p(folder),
         :ok <- PrivateFile.touch(Path.expand(path)),
         {:ok, _path} <- Document.replace(folder, Path.basename(path), content) do
      :ok
    else
      {:error, %{__exception__: true} = error} -> wrong(path, Exception.message(error))
      {:error, reason} -> wrong(path, to_string(:file.format_error(reason)))
    end
  end

  # Accounts

  defp accounts(fields) do
    fields
    |> Enum.sort()
    |> UntilError.map(fn {name, options} ->
      with {:error, reason} <- account(name, options),
           do: wrong(path(), "the account #{inspect(name)}: #{reason}")
    end)
  end

  defp account(name, %{} = options) do
    with :ok <- check_name(name),
         {:ok, vendor} <- vendor(options["vendor"] || name),
         {:ok, module} = Vendor.fetch(vendor),
         {:ok, options} <- options(Map.delete(options, "vendor"), module.schema()),
         # The file is the operator's, and has few names.
         do: {:ok, {String.to_atom(name), [{:vendor, vendor} | options]}}
  end

  defp account(_name, _other), do: {:error, "expected an object with its options"}

  defp check_name(name) do
    if name =~ ~r/\A[a-z][a-z0-9_]{0,30}\z/ and name != "key",
      do: :ok,
      else: {:error, "expected a name of lower-case letters, digits and _, other than key"}
  end

  defp vendor(name) do
    case Enum.find(Vendor.names(), &(Atom.to_string(&1) == name)) do
      nil ->
        names = Enum.map_join(Vendor.names(), ", ", &to_string/1)
        {:error, "expected one of #{names} as its vendor, got: #{inspect(name)}"}

      vendor ->
        {:ok, vendor}
    end
  end

  defp options(fields, schema) do
    known = Map.new(Keyword.keys(schema) ++ @common, &{Atom.to_string(&1), &1})

    UntilError.map(fields, fn {name, value} ->
      with {:ok, option} <- Map.fetch(known, name),
           {:ok, value} <- value(option, schema[option], value) do
        {:ok, {option, value}}
      else
        :error ->
          names = known |> Map.keys() |> Enum.sort() |> Enum.join(", ")
          {:error, "unknown option #{inspect(name)}; its options are #{names}"}

        {:error, reason} ->
          {:error, "#{name}: #{reason}"}
      end
    end)
  end

  defp value(option, {kind, _}, secret) when kind in [:secret, :secret_or_text] do
    case secret do
      %{"env" => name} when is_binary(name) and map_size(secret) == 1 ->
        {:ok, {:env, name}}

      %{"file" => path} when is_binary(path) and map_size(secret) == 1 ->
        file(option, path)

      text when is_binary(text) and kind == :secret_or_text ->
        {:ok, text}

      _ ->
        {:error, ~s(expected {"env": NAME} or {"file": PATH}; a secret has no place in this file)}
    end
  end

  defp value(:services, _option, list) when is_list(list) do
    {:ok,
     Enum.map(list, fn name -> Enum.find(Vendor.services(), name, &(to_string(&1) == name)) end)}
  end

  defp value(:profiles, _option, "all"), do: {:ok, :all}

  defp value(_option, _check, %{} = nested) do
    {:ok,
     for {name, value} <- nested do
       {Enum.find(@nested, name, &(to_string(&1) == name)), Map.get(@words, value, value)}
     end}
  end

  defp value(option, _check, word) when option in [:tls, :auth],
    do: {:ok, Map.get(@words, word, word)}

  defp value(_option, _check, value), do: {:ok, value}

  # A path is relative to the folder of the accounts. A file that Google's console gives has the
  # id and the secret of a client.
  defp file(option, path) do
    path = Path.expand(path, Path.dirname(Path.expand(path())))

    case read_file(path) do
      {:ok, text} ->
        value = text |> field(option) |> String.trim()
        {:ok, fn -> value end}

      :missing ->
        {:error, "the file #{path} does not exist"}

      {:error, reason} ->
        {:error, "the file #{path}: #{reason}"}
    end
  end

  defp field(text, option) when option in [:client_id, :client_secret] do
    case client(text) do
      {:ok, client} -> Map.get(client, Atom.to_string(option), "")
      :error -> text
    end
  end

  defp field(text, _option), do: text

  # The client in a file that Google's console gives.
  defp client(text) do
    case JSON.decode(text) do
      {:ok, %{"installed" => %{} = client}} -> {:ok, client}
      {:ok, %{"web" => %{} = client}} -> {:ok, client}
      _other -> :error
    end
  end

  @doc """
  Remembers the client of `connect`: an id, a file, or both. A file is the JSON file of Google's
  console, or with an id a secret.
  """
  @spec save_client(String.t(), String.t() | nil, Path.t() | nil) :: :ok | {:error, String.t()}
  def save_client(_name, nil, nil), do: :ok
  def save_client(name, id, nil), do: save(name, %{"client_id" => id})

  def save_client(name, id, file) do
    secret = %{"file" => Path.expand(file)}

    with {:ok, text} <- read_client(file),
         {:ok, id} <- client_id(id, JSON.decode(text), secret) do
      save(name, %{"client_id" => id, "client_secret" => secret})
    else
      {:error, reason} -> {:error, "--client-secret-file #{file}: #{reason}"}
    end
  end

  defp read_client(file) do
    with :missing <- read_file(file), do: file_error(:enoent)
  end

  # Only the type Desktop app may send the browser to any port of this machine.
  defp client_id(nil, {:ok, %{"installed" => %{"client_id" => _, "client_secret" => _}}}, file),
    do: {:ok, file}

  defp client_id(_id, {:ok, %{"web" => _}}, _file),
    do: {:error, "it is a client of the type Web application; make one of the type Desktop app"}

  defp client_id(_id, {:ok, %{"type" => "service_account"}}, _file) do
    {:error,
     "it is the key of a service account, to which nobody signs in; add " <>
       ~s({"service_account": {"file": PATH}, "subject": ADDRESS} to the account in #{path()})}
  end

  defp client_id(nil, {:ok, %{}}, _file),
    do: {:error, ~s(expected the JSON file of Google's console, which begins with {"installed":)}

  defp client_id(nil, _secret, _file),
    do: {:error, "it has only a secret; add --client-id ID"}

  defp client_id(id, _secret, _file), do: {:ok, id}

  # The key

  defp keys do
    path = key_path()

    cond do
      set?(@key_variable) ->
        {:ok, words(System.get_env(@key_variable))}

      not File.exists?(path) ->
        {:ok, []}

      true ->
        with :ok <- check_mode(path, "the key;"),
             {:ok, text} <- read_file(path),
             keys = words(text),
             :ok <- check_keys(keys) do
          {:ok, keys}
        else
          {:error, reason} -> wrong(path, reason)
        end
    end
  end

  defp words(text),
    do: for(key <- String.split(text, [",", " ", "\n"], trim: true), do: fn -> key end)

  defp check_keys(keys) do
    with {:error, _reason} <- Cipher.keys(keys) do
      {:error,
       "expected a key of 32 bytes in base64; restore the file, or remove it and connect again"}
    else
      {:ok, _keys} -> :ok
    end
  end

  defp check_mode(path, what) do
    case File.stat(path) do
      {:ok, %{mode: mode}} ->
        if Bitwise.band(mode, 0o077) == 0,
          do: :ok,
          else: {:error, "others can read #{what} run: chmod 600 #{path}"}

      {:error, reason} ->
        file_error(reason)
    end
  end

  @doc "Makes the file with the key if there is neither it nor the variable."
  @spec create_key() :: {:ok, :created | :there} | {:error, String.t()}
  def create_key do
    if set?(@key_variable) or File.exists?(key_path()) do
      {:ok, :there}
    else
      with :ok <- write(key_path(), Cipher.generate() <> "\n"), do: {:ok, :created}
    end
  end

  @doc """
  Replaces the key in its file: the new one in front of the others, `fun`, then the new one alone.
  With the key in the variable only `fun` is called.
  """
  @spec replace_key((() -> :ok | refused)) :: :ok | {:error, term()} | refused
        when refused: term()
  def replace_key(fun) do
    path = key_path()

    if set?(@key_variable) or not File.exists?(path) do
      fun.()
    else
      new = Cipher.generate()

      with {:ok, old} <- File.read(path),
           :ok <- write(path, new <> "\n" <> old),
           :ok <- fun.(),
           do: write(path, new <> "\n")
    end
  end
end
