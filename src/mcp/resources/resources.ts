import { type ReadResourceResult, type Resource, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { Gateway } from '../../gateway/gateway.ts'
import { catalogOf, modelEntry } from './catalog-entry.ts'
import { modelPrices, pricingOf } from './pricing.ts'
import { REFERENCES } from './reference.ts'

const MIME_TYPE = 'application/json'

/** A kind of resource: one without a name, or one for each name in its folder. */
interface Folder {
  readonly uri: string
  readonly variable: string
  readonly title: string
  readonly description: string
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

/** What can be read without naming a model. */
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

/** What can be read by name. */
export function resourceTemplates() {
  return FOLDERS.map(({ uri, variable, title, description }) => ({
    uriTemplate: `${uri}/{${variable}}`,
    name: `${uri.slice('gateway://'.length)} by ${variable}`,
    title,
    description,
    mimeType: MIME_TYPE,
  }))
}

/** Names that fit a template's variable; undefined when there is no such template or variable. */
export function namesFor(gateway: Gateway, uriTemplate: string, variable: string): readonly string[] | undefined {
  const folder = FOLDERS.find((candidate) => `${candidate.uri}/{${candidate.variable}}` === uriTemplate)
  if (folder === undefined || folder.variable !== variable) return undefined
  return folder === REFERENCE ? [...REFERENCES.keys()] : gateway.catalog.list().map((model) => model.id)
}

/**
 * Reads one resource.
 * @throws ResourceNotFoundError for a URI that names none.
 */
export function readResource(gateway: Gateway, uri: string): ReadResourceResult {
  const value = valueAt(gateway, uri)
  if (value === undefined) throw new ResourceNotFoundError(uri)
  return { contents: [{ uri, mimeType: MIME_TYPE, text: JSON.stringify(value) }] }
}

function valueAt(gateway: Gateway, uri: string): unknown {
  if (uri === CATALOG.uri) return catalogOf(gateway)
  if (uri === PRICING.uri) return pricingOf(gateway)
  const slash = uri.lastIndexOf('/')
  const name = decoded(uri.slice(slash + 1))
  if (name === undefined) return undefined
  switch (uri.slice(0, slash)) {
    case CATALOG.uri:
      return modelEntry(gateway, name)
    case PRICING.uri:
      return modelPrices(gateway, name)
    case REFERENCE.uri:
      return REFERENCES.get(name)?.()
    default:
      return undefined
  }
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
