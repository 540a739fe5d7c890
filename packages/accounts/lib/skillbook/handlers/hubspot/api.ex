defmodule Skillbook.Handlers.HubSpot.API do
  @moduledoc false
  # The requests to HubSpot behind the commands.

  alias Skillbook.Connections
  alias Skillbook.Connections.{Client, Vendor}
  alias Skillbook.Handlers.HubSpot.Object

  @type call :: %{account: Connections.Account.t(), object: Object.t(), now: DateTime.t()}
  @type crm_record :: map()

  @url "https://api.hubapi.com"
  @reads [repeat: true, changes: false]

  @doc "The account of a call, for a kind of records."
  @spec call(Skillbook.Context.t(), Object.t()) :: {:ok, call()} | {:error, Exception.t()}
  def call(context, object) do
    with {:ok, account} <- Connections.account(context, :hubspot),
         do: {:ok, %{account: account, object: object, now: context.now}}
  end

  @doc "Records by a search, and how many there are."
  @spec search(call(), map()) ::
          {:ok, [crm_record()], non_neg_integer()} | {:error, Exception.t()}
  def search(call, body) do
    request = [method: :post, url: objects(call) <> "/search", json: body]

    with {:ok, %{"results" => results} = answer} <- send(call, request, "search", @reads) do
      total = answer["total"]
      {:ok, results, if(is_integer(total), do: total, else: length(results))}
    end
  end

  @doc "A record by its id, or a contact by its address, with the ids of associated records."
  @spec get(call(), String.t(), [String.t()]) :: {:ok, crm_record()} | {:error, Exception.t()}
  def get(call, id, properties) do
    # Tickets have a scope of their own, so other commands do not ask for them.
    names = Object.associated(call.object) -- ["ticket"]
    associations = for name <- names, do: Object.fetch!(name).many

    query =
      by(id) ++
        Enum.map(properties, &{"properties", &1}) ++
        Enum.map(associations, &{"associations", &1})

    send(call, [url: record(call, id), query: query], "get", [])
  end

  @doc "Several records by their ids, in one request. Unknown ids are left out."
  @spec get_all(call(), [String.t()], [String.t()]) ::
          {:ok, [crm_record()]} | {:error, Exception.t()}
  def get_all(call, ids, properties) do
    body = %{
      inputs: Enum.map(ids, &%{id: &1}),
      properties: properties,
      propertiesWithHistory: []
    }

    request = [method: :post, url: objects(call) <> "/batch/read", json: body]

    with {:ok, %{"results" => results}} <- send(call, request, "batch_read", @reads) do
      found = Map.new(results, &{&1["id"], &1})
      {:ok, for(id <- ids, record = found[id], do: record)}
    end
  end

  @doc "Creates a record together with its associations."
  @spec create(call(), map(), [map()]) :: {:ok, crm_record()} | {:error, Exception.t()}
  def create(call, properties, associations) do
    body = %{properties: properties, associations: associations}
    send(call, [method: :post, url: objects(call), json: body], "create", [])
  end

  @doc "Sets properties of a record. Setting the same values twice is harmless."
  @spec update(call(), String.t(), map()) :: {:ok, crm_record()} | {:error, Exception.t()}
  def update(call, id, properties) do
    request = [
      method: :patch,
      url: record(call, id),
      query: by(id),
      json: %{properties: properties}
    ]

    send(call, request, "update", repeat: true)
  end

  @doc "Associates a record with another one, by the given types or else without a label."
  @spec associate(call(), String.t(), Object.t(), String.t(), [map()]) ::
          {:ok, term()} | {:error, Exception.t()}
  def associate(call, id, to, to_id, []) do
    path = "/crm/v4/objects/#{call.object.many}/#{id}/associations/default/#{to.many}/#{to_id}"
    named(call, [method: :put, url: @url <> path], "hubspot.associations.create_default", [])
  end

  def associate(call, id, to, to_id, types) do
    path = "/crm/v4/objects/#{call.object.many}/#{id}/associations/#{to.many}/#{to_id}"
    named(call, [method: :put, url: @url <> path, json: types], "hubspot.associations.create", [])
  end

  @doc "The labels that associations between two kinds of records can have."
  @spec labels(call(), Object.t()) :: {:ok, [map()]} | {:error, Exception.t()}
  def labels(call, to) do
    path = "/crm/v4/associations/#{call.object.many}/#{to.many}/labels"
    list(call, path, [], "hubspot.labels.get_all")
  end

  @doc "The definitions of the properties of a kind of records."
  @spec properties(call()) :: {:ok, [map()]} | {:error, Exception.t()}
  def properties(call),
    do: list(call, "/crm/v3/properties/#{call.object.many}", [], "hubspot.properties.get_all")

  @doc "The pipelines of a kind of records: deals or tickets."
  @spec pipelines(call()) :: {:ok, [map()]} | {:error, Exception.t()}
  def pipelines(call),
    do: list(call, "/crm/v3/pipelines/#{call.object.many}", [], "hubspot.pipelines.get_all")

  @doc "The users of the account with an address."
  @spec owners(call(), String.t()) :: {:ok, [map()]} | {:error, Exception.t()}
  def owners(call, email),
    do: list(call, "/crm/v3/owners/", [email: email, limit: 1], "hubspot.owners.get_page")

  defp list(call, path, query, method) do
    with {:ok, body} <- named(call, [url: @url <> path, query: query], method, []) do
      case body do
        %{"results" => results} when is_list(results) -> {:ok, Enum.filter(results, &is_map/1)}
        _ -> {:ok, []}
      end
    end
  end

  defp objects(call), do: "#{@url}/crm/v3/objects/#{call.object.many}"

  # Ids are digits or an address, as their flags are checked.
  defp record(call, id), do: objects(call) <> "/" <> URI.encode(id, &URI.char_unreserved?/1)

  defp by(id), do: if(String.contains?(id, "@"), do: [{"idProperty", "email"}], else: [])

  defp send(call, request, action, options),
    do: named(call, request, "hubspot.#{call.object.many}.#{action}", options)

  defp named(%{account: account}, request, method, options) do
    scopes = Vendor.scopes(account.vendor, account.command || "")
    options = [method: method, scopes: scopes] ++ options
    with {:ok, %{body: body}} <- Client.request(account, request, options), do: {:ok, body}
  end
end
