defmodule Skillbook.Connections.Config do
  @moduledoc false
  # Reads a book's option `:connections`. `Skillbook.Connections` documents it.

  alias Skillbook.Book
  alias Skillbook.Connections.{Account, Server, Vendor}
  alias Skillbook.Connections.Client.Quota
  alias Skillbook.{HTTP, OptionError}
  alias Skillbook.Support.{Options, Secret, UntilError}

  @typedoc "The accounts in the book's order, and the keys that encrypt tokens, the first first."
  @type t :: %__MODULE__{accounts: [Account.t()], keys: [Secret.t()]}

  # Options have secrets of the application.
  @derive {Inspect, only: []}
  defstruct accounts: [], keys: []

  @subject "a book's :connections"

  @doc "Reads the option of a book with this name; `nil` if it has none."
  @spec read(term(), atom()) :: {:ok, t() | nil} | {:error, OptionError.t()}
  def read([], _book), do: {:ok, nil}
  def read(options, book) when is_function(options, 0), do: read(options.(), book)

  def read(options, book) do
    options = Options.keywords(options)

    with :ok <- check_form(options),
         {key, accounts} = Keyword.pop(options, :key, []),
         {:ok, keys} <- read_keys(key),
         :ok <- unique(Keyword.keys(accounts)),
         {:ok, accounts} <- UntilError.map(accounts, &account(&1, book)),
         do: {:ok, %__MODULE__{accounts: accounts, keys: keys}}
  end

  # Values may be secret, so errors have none.
  defp check_form(options) do
    if Keyword.keyword?(options),
      do: :ok,
      else: invalid(nil, @subject, "a keyword list of accounts", :hidden)
  end

  defp unique(names) do
    case names -- Enum.uniq(names) do
      [] -> :ok
      [name | _] -> invalid(:connections, "a book", "accounts with different names", name)
    end
  end

  defp read_keys(key) do
    keys = List.wrap(key)

    if Enum.all?(keys, &Secret.valid?/1),
      do: {:ok, keys},
      else: invalid(:key, @subject, "#{Secret.expected()}, or a list of these", :hidden)
  end

  defp account({name, options}, book) do
    subject = "the account #{inspect(name)} of #{@subject}"
    options = Options.keywords(options)

    with :ok <- check_account(options, subject),
         {:ok, vendor} <- vendor(options[:vendor] || name, subject),
         schema = vendor.schema(),
         own = Keyword.delete(options, :vendor),
         :ok <- own |> hide(schema) |> Options.validate(subject, checks(schema)),
         :ok <- required(own, schema, subject) do
      # A vendor with a URL of its own has no other hosts to replace.
      common = if schema[:url], do: [:http, :profiles], else: [:http, :profiles, :url]
      map = own |> Keyword.drop([:services | common]) |> Map.new()
      account = struct!(%Account{book: book, name: name, vendor: vendor}, own(own, common))
      account = %{account | options: map, identity: identity(map)}
      services(account, Keyword.get(own, :services, :all), subject)
    end
  end

  defp own(options, names), do: Keyword.take(options, names)

  defp check_account(options, subject) do
    if Keyword.keyword?(options),
      do: :ok,
      else: invalid(nil, subject, "a keyword list or a map with atoms as keys", :hidden)
  end

  defp vendor(name, subject) do
    with :error <- Vendor.fetch(name), do: invalid(:vendor, subject, Vendor.expected(), name)
  end

  defp identity(%{username: username}), do: username
  defp identity(_options), do: nil

  defp services(account, which, subject) do
    offered = account.options |> account.vendor.services() |> Keyword.keys()

    case which do
      :all ->
        {:ok, %{account | services: offered}}

      _list ->
        if which -- offered == [] do
          {:ok, %{account | services: which}}
        else
          names = Enum.map_join(offered, ", ", &inspect/1)
          invalid(:services, subject, "services of this vendor (#{names})", which)
        end
    end
  end

  # Values that look like secrets are replaced before errors can show them.
  defp hide(options, schema) do
    Enum.map(options, fn {name, value} ->
      case schema[name] do
        {:secret, _} -> {name, if(Secret.valid?(value), do: value, else: :hidden)}
        _ -> {name, value}
      end
    end)
  end

  defp checks(schema) do
    own =
      for {name, option} <- schema do
        case option do
          {:secret, _} -> {name, {Secret.expected(), &Secret.valid?/1}}
          {:secret_or_text, _} -> {name, {"text, or #{Secret.expected()}", &secret_or_text?/1}}
          {expected, check, _} -> {name, {expected, check}}
        end
      end

    Keyword.merge(common(), own)
  end

  defp secret_or_text?(value), do: Options.text?(value) or Secret.valid?(value)

  defp common do
    [
      vendor: {Vendor.expected(), &is_atom/1},
      profiles: {":all or a list of ids", &(&1 == :all or Options.texts?(&1))},
      services: {"a list of services", &services?/1},
      url: {~s(a URL such as "https://gateway.example.com"), &Account.url?/1},
      http: {HTTP.adapter_expected(), &HTTP.adapter?/1},
      retries: {"a whole number from 0 to 20", &(&1 in 0..20)},
      quota: {Quota.expected(), &Quota.option?/1}
    ]
  end

  defp services?(list), do: is_list(list) and Enum.all?(list, &(&1 in Vendor.services()))

  defp required(options, schema, subject) do
    Enum.find_value(schema, :ok, fn {name, option} ->
      if elem(option, tuple_size(option) - 1) == :required and
           not Keyword.has_key?(options, name),
         do: {:error, %OptionError{subject: subject, option: name, problem: :missing}}
    end)
  end

  defp invalid(option, subject, expected, value) do
    problem = {:invalid, expected, value}
    {:error, %OptionError{subject: subject, option: option, problem: problem}}
  end

  @doc "The services that the accounts offer."
  @spec services(t()) :: [Vendor.service()]
  def services(%__MODULE__{accounts: accounts}),
    do: accounts |> Enum.flat_map(& &1.services) |> Enum.uniq()

  @doc "The accounts of a book's option, in its order."
  @spec accounts(Book.t() | nil) :: [Account.t()]
  def accounts(%Book{of_parts: %{connections: %__MODULE__{accounts: accounts}}}), do: accounts
  def accounts(_none), do: []

  @doc "All accounts of a book: those of its option, and the servers of other parts."
  @spec all(Book.t()) :: [Account.t()]
  def all(book), do: accounts(book) ++ Server.accounts(book)

  @doc "The keys of a book."
  @spec keys(Book.t()) :: [Secret.t()]
  def keys(%{of_parts: parts}), do: (parts[:connections] || %__MODULE__{}).keys

  @doc "An error if a server has the name of an account."
  @spec check(Book.t()) :: :ok | {:error, OptionError.t()}
  def check(book), do: book |> all() |> Enum.map(&to_string(&1.name)) |> unique()

  @doc "The account of a name."
  @spec find(Book.t(), atom() | String.t()) :: {:ok, Account.t()} | :error
  # By text, so that no name of a command line becomes an atom.
  def find(book, name) do
    case book |> all() |> Enum.find(&(to_string(&1.name) == to_string(name))) do
      nil -> :error
      account -> {:ok, account}
    end
  end
end
