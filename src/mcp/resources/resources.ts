import {
  type CompleteRequestParams,
  type CompleteResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
} from '@modelcontextprotocol/server'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { ENDPOINTS } from '../../endpoints/registry.ts'
import { isVisible, type KeyOfCaller, visibleIds, visibleModels } from '../tools/lookup-tools.ts'

const MIME_TYPE = 'application/json'

/** Maximum number of suggestions in one answer (MCP specification, "Completion"). */
const MAX_VALUES = 100

/** Kind of resource, with one resource per name in its folder. */
interface Folder {
  readonly uri: string
  readonly variable: string
  readonly title: string
  readonly description: string
}

/** Reference of each endpoint by its id, built on request. Several paths may share an id. */
const REFERENCES: ReadonlyMap<string, () => unknown> = new Map(
  ENDPOINTS.map(({ id }) => [
    id,
    () => ({ endpoint: id, requests: ENDPOINTS.filter((endpoint) => endpoint.id === id).flatMap(requestsOf) }),
  ]),
)

/** Shapes of request bodies, and when to use each. Rules that depend on the model are in `gateway://catalog/{model}`. */
function requestsOf(endpoint: Endpoint) {
  const shapes: readonly (readonly [string, Endpoint])[] =
    endpoint.shapes === undefined
      ? [['every model of the endpoint', endpoint]]
      : Array.from(endpoint.shapes, ([protocol, shape]) => [`models of the protocol ${protocol}`, shape])
  return shapes.flatMap(([described, shape]) => {
    const schema = shape.requestSchema?.()
    return schema === undefined ? [] : [{ method: 'POST', path: endpoint.path, for: described, schema }]
  })
}

const CATALOG: Folder = {
  uri: 'gateway://catalog',
  variable: 'model',
  title: 'Model catalog',
  description: 'Kinds, limits and abilities of a model.',
}
const PRICING: Folder = {
  uri: 'gateway://pricing',
  variable: 'model',
  title: 'Prices',
  description: 'What a model costs by the price list in force.',
}
const REFERENCE: Folder = {
  uri: 'gateway://reference',
  variable: 'endpoint',
  title: 'Request reference',
  description: 'The request bodies of an endpoint, as JSON Schema.',
}
const FOLDERS = [CATALOG, PRICING, REFERENCE]

/** Lists resources whose URI contains no name. */
export function listResources(): Resource[] {
  return [
    { uri: CATALOG.uri, name: 'catalog', title: CATALOG.title, description: 'Every model.', mimeType: MIME_TYPE },
    { uri: PRICING.uri, name: 'pricing', title: PRICING.title, description: 'Every price.', mimeType: MIME_TYPE },
    ...[...REFERENCES.keys()].map((id) => ({
      uri: `${REFERENCE.uri}/${id}`,
      name: `reference ${id}`,
      title: `Requests of ${id}`,
      description: REFERENCE.description,
      mimeType: MIME_TYPE,
    })),
  ]
}

/** Lists resources that are read by name. */
export function resourceTemplates() {
  return FOLDERS.map(({ uri, variable, title, description }) => ({
    uriTemplate: `${uri}/{${variable}}`,
    name: `${uri.slice('gateway://'.length)} by ${variable}`,
    title,
    description,
    mimeType: MIME_TYPE,
  }))
}

/** Returns the values of a template's variable, or `undefined` if there is no such template or variable. */
function namesFor(caller: KeyOfCaller, uriTemplate: string, variable: string): readonly string[] | undefined {
  const folder = FOLDERS.find((candidate) => `${candidate.uri}/{${candidate.variable}}` === uriTemplate)
  if (folder === undefined || folder.variable !== variable) return undefined
  return folder === REFERENCE ? [...REFERENCES.keys()] : [...visibleIds(caller)]
}

/**
 * Reads one resource.
 * @throws ResourceNotFoundError if the URI is unknown.
 */
export function readResource(caller: KeyOfCaller, uri: string): ReadResourceResult {
  const value = valueAt(caller, uri)
  if (value === undefined) throw new ResourceNotFoundError(uri)
  return { contents: [{ uri, mimeType: MIME_TYPE, text: JSON.stringify(value) }] }
}

/**
 * Suggests names for the variable of a resource template.
 * @throws ProtocolError if the template does not exist.
 */
export function complete(caller: KeyOfCaller, { ref, argument }: CompleteRequestParams): CompleteResult {
  const names = ref.type === 'ref/resource' ? namesFor(caller, ref.uri, argument.name) : undefined
  if (names === undefined) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is nothing to complete by that reference.')
  }
  const values = names.filter((name) => name.startsWith(argument.value))
  return {
    completion: { values: values.slice(0, MAX_VALUES), total: values.length, hasMore: values.length > MAX_VALUES },
  }
}

function valueAt(caller: KeyOfCaller, uri: string): unknown {
  if (uri === CATALOG.uri) return { models: visibleModels(caller) }
  if (uri === PRICING.uri) return pricingOf(caller)
  // Ids of models may contain slashes, which clients may encode or not.
  const folder = FOLDERS.find((candidate) => uri.startsWith(`${candidate.uri}/`))
  const name = folder && decoded(uri.slice(folder.uri.length + 1))
  if (name === undefined) return undefined
  switch (folder) {
    case CATALOG:
      return modelEntry(caller, name)
    case PRICING:
      return modelPrices(caller, name)
    default:
      return REFERENCES.get(name)?.()
  }
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/** Returns the catalog entry of a model, by id or alias, without its routes to vendors, or `undefined` if there is no such model. */
function modelEntry(caller: KeyOfCaller, idOrAlias: string) {
  const { gateway } = caller
  const model = gateway.catalog.find(idOrAlias)
  if (model === undefined || !isVisible(caller, model)) return undefined
  const { id, displayName, kinds, aliases, limits, image, video, protocol } = model
  return {
    id,
    display_name: displayName,
    kinds,
    available: gateway.models().some((row) => row.id === id && row.available),
    aliases,
    ...(protocol === undefined ? {} : { protocol }),
    limits,
    ...(image === undefined ? {} : { image }),
    ...(video === undefined ? {} : { video }),
  }
}

/** Returns all prices in force of the models that the key sees. */
function pricingOf(caller: KeyOfCaller) {
  const prices = caller.gateway.prices()
  const seen = visibleIds(caller)
  const rows = (prices ?? []).filter(({ model }) => seen.has(model))
  return { billing: prices === undefined ? 'off' : 'on', currency: 'USD', prices: rows }
}

/** Returns the prices of one model, by id or alias, or `undefined` if there is no such model. */
function modelPrices(caller: KeyOfCaller, idOrAlias: string) {
  const model = caller.gateway.catalog.find(idOrAlias)
  if (model === undefined || !isVisible(caller, model)) return undefined
  const pricing = pricingOf(caller)
  return { ...pricing, model: model.id, prices: pricing.prices.filter((price) => price.model === model.id) }
}
