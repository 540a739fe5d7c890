defmodule Skillbook.Connections.HubSpot do
  @moduledoc """
  Accounts of HubSpot, with the token of a private app.

  ## Options

    * `:token` (secret) - the access token of the private app. Required
  """

  @behaviour Skillbook.Connections.Vendor

  # Notes, tasks, calls and meetings have no scopes of their own. A private app needs in addition
  # `crm.objects.owners.read` for `--owner`.
  @commands %{
    "hubspot.contacts" => ["crm.objects.contacts.read"],
    "hubspot.create_contact" => ["crm.objects.contacts.write"],
    "hubspot.update_contact" => ["crm.objects.contacts.write"],
    "hubspot.companies" => ["crm.objects.companies.read"],
    "hubspot.create_company" => ["crm.objects.companies.write"],
    "hubspot.update_company" => ["crm.objects.companies.write"],
    "hubspot.deals" => ["crm.objects.deals.read"],
    "hubspot.create_deal" => ["crm.objects.deals.write"],
    "hubspot.update_deal" => ["crm.objects.deals.write"],
    "hubspot.tickets" => ["tickets"],
    "hubspot.create_ticket" => ["tickets"],
    "hubspot.update_ticket" => ["tickets"],
    "hubspot.notes" => ["crm.objects.contacts.read"],
    "hubspot.create_note" => ["crm.objects.contacts.write"],
    "hubspot.update_note" => ["crm.objects.contacts.write"],
    "hubspot.tasks" => ["crm.objects.contacts.read"],
    "hubspot.create_task" => ["crm.objects.contacts.write"],
    "hubspot.update_task" => ["crm.objects.contacts.write"],
    "hubspot.calls" => ["crm.objects.contacts.read"],
    "hubspot.create_call" => ["crm.objects.contacts.write"],
    "hubspot.update_call" => ["crm.objects.contacts.write"],
    "hubspot.meetings" => ["crm.objects.contacts.read"],
    "hubspot.create_meeting" => ["crm.objects.contacts.write"],
    "hubspot.update_meeting" => ["crm.objects.contacts.write"]
  }

  @impl true
  def schema, do: [token: {:secret, :required}]

  @impl true
  def auth(_options), do: {:secret, :token}

  @impl true
  def services(_options), do: [hubspot: __MODULE__]

  @impl true
  def commands, do: @commands

  @impl true
  def rules, do: Skillbook.Connections.Client.HubSpotRules

  @doc "The scopes of a command: any one of them suffices, the first is the least."
  @spec scopes(String.t()) :: [String.t()]
  def scopes(command), do: Map.get(@commands, command, [])
end
