import { createHmac } from 'node:crypto'
import type { ModelDefinition } from '../../catalog/model.ts'
import { checkModelRows } from '../../catalog/parse-model-definitions.ts'
import type { CredentialProvider } from '../../core/credential.ts'
import { checkGivenMembers, checkMembers, type MemberNames, memberNames } from '../../core/known-members.ts'
import type { EndUserMembers } from '../../endpoints/operation.ts'
import {
  type ApiKeys,
  type NamedVendorOptions,
  type Vendor,
  type VendorOptions,
  vendorConnection,
  type WeightedKey,
} from '../vendor.ts'

const VENDOR_OPTIONS = memberNames<VendorOptions>()('apiKey passUnknownModels headers query tls proxy')
const WEIGHTED_KEY_MEMBERS = memberNames<WeightedKey>()('key weight')

/** Option of vendors with stored objects. */
export interface VendorObjectOptions {
  /**
   * Whether callers may name files, containers and other stored objects of your account at the vendor. Default false: all accounts of
   * the gateway share them, so each caller could read what another one stored.
   */
  readonly allowVendorObjects?: boolean | undefined
}

/** Option of vendors that accept a `safety_identifier`. */
export interface SafetyIdentifierOptions {
  /**
   * Secret of at least 16 characters. With it, chats and Responses carry `safety_identifier`: an HMAC-SHA-256 of account and end user.
   * It replaces the caller's own `safety_identifier` and `user`. If omitted, those of the caller are sent.
   */
  readonly safetyIdentifierKey?: string | undefined
}

/** Options that every factory reads in the same way. A factory accepts those that its own options have. */
type CommonOptions = NamedVendorOptions &
  VendorObjectOptions &
  SafetyIdentifierOptions & { readonly models?: readonly Omit<ModelDefinition, 'vendor'>[] | undefined }

/**
 * Checks the names in the options of a factory, and returns the parts of its vendor that all vendors have.
 * @param names Options of the factory in addition to those of {@link VendorOptions}.
 * @param usual Id and display name, if the options have none.
 * @throws TypeError naming the path of an unknown member and the nearest known one, or a common option that is invalid.
 */
export function commonParts(
  factory: string,
  options: CommonOptions,
  names: MemberNames,
  usual: Pick<Vendor, 'id' | 'displayName'>,
) {
  checkVendorOptions(factory, options, names)
  const { id = usual.id, displayName = usual.displayName, models = [] } = options
  if (!Array.isArray(models)) throw new TypeError(`${factory}: models must be a list`)
  return {
    id,
    displayName,
    ...vendorConnection(options),
    ...keyPool(options.apiKey),
    allowsVendorObjects: options.allowVendorObjects,
    endUserMembers: safetyIdentifiers(factory, options.safetyIdentifierKey),
    models: models.map((model) => ({ ...model, vendor: id })),
    passUnknownModels: options.passUnknownModels ?? false,
  }
}

function checkVendorOptions(factory: string, options: CommonOptions, names: MemberNames): void {
  checkGivenMembers(options, { ...names, ...VENDOR_OPTIONS }, factory)
  checkModelRows(options.models, factory)
  if (!Array.isArray(options.apiKey)) return
  for (const [index, key] of options.apiKey.entries())
    if (typeof key === 'object') checkMembers(key, WEIGHTED_KEY_MEMBERS, factory, `apiKey[${index}]`)
}

/** Paths whose requests contain the member (OpenAI API reference, "Safety best practices"). */
const PATHS = /\/(?:chat\/completions|responses)(?:\?|$)/

/** Shortest key in characters. */
const MIN_SECRET_LENGTH = 16

/**
 * Returns the members that name an end user to a vendor: an HMAC-SHA-256 of account and end user as 64 hexadecimal digits. Returns
 * `undefined` without a key.
 * @throws TypeError if the key has fewer than 16 characters.
 */
function safetyIdentifiers(factory: string, key: string | undefined): EndUserMembers | undefined {
  if (key === undefined) return undefined
  if (typeof key !== 'string' || key.length < MIN_SECRET_LENGTH)
    throw new TypeError(`${factory}: safetyIdentifierKey must be a string of at least ${MIN_SECRET_LENGTH} characters`)
  return (path, { accountId, endUser, request }) => {
    if (!PATHS.test(path)) return undefined
    const name = JSON.stringify([accountId, endUser ?? null])
    const identifier = createHmac('sha256', key).update(name).digest('hex')
    const hasUser = 'user' in request && request.user !== undefined
    return { safety_identifier: identifier, ...(hasUser ? { user: identifier } : {}) }
  }
}

/** Address of a vendor's API. */
export interface VendorAddress {
  /** Scheme, host and port. */
  readonly origin: string
  /** Path before the API's own path: empty, or `/proxy` without a trailing slash. */
  readonly prefix: string
}

/**
 * Splits a base URL into origin and path prefix. A base URL that already ends in the API's own path (`apiPath`, such as `/v1`) is
 * accepted, because vendors' SDKs use that form.
 * @throws TypeError if it is not an http(s) URL, or has credentials, a query or a fragment.
 */
export function vendorAddress(baseURL: string, apiPath = ''): VendorAddress {
  if (!URL.canParse(baseURL))
    throw new TypeError(`baseURL must be an http(s) URL, such as https://api.example.com/v1, not ${baseURL}`)
  const url = new URL(baseURL)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new TypeError(`baseURL is not an http(s) URL: ${baseURL}`)
  if (url.username !== '' || url.password !== '') throw new TypeError('baseURL must not carry credentials')
  if (url.search !== '' || url.hash !== '')
    throw new TypeError(`baseURL must not carry a query or fragment: ${baseURL}`)
  const path = url.pathname.replace(/\/+$/, '')
  const prefix = apiPath !== '' && path.endsWith(apiPath) ? path.slice(0, -apiPath.length) : path
  return { origin: url.origin, prefix }
}

const RESOURCE = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/i

/** Address of a customer's own host at a cloud: the name of the resource, or any address of it. */
export interface ResourceAddress {
  readonly resource?: string | undefined
  readonly endpoint?: string | undefined
}

/**
 * Returns the address of a resource at a cloud: `endpoint` as given, or `https://RESOURCE.domain`.
 * @throws TypeError unless exactly one of the two is given, and for an invalid resource name.
 */
export function resourceAddress(factory: string, { resource, endpoint }: ResourceAddress, domain: string): string {
  if (resource === undefined && endpoint === undefined) throw new TypeError(`${factory}: set resource or endpoint`)
  if (resource !== undefined && endpoint !== undefined)
    throw new TypeError(`${factory}: set only one of resource and endpoint`)
  if (endpoint !== undefined) return endpoint
  if (!RESOURCE.test(resource!)) throw new TypeError(`${factory}: resource must be the name of a resource: ${resource}`)
  return `https://${resource}.${domain}`
}

/** The keys of a vendor, with shares and providers if given. */
export interface KeyPool {
  readonly apiKeys: readonly string[]
  readonly keyWeights?: readonly number[]
  readonly credentialProviders?: readonly (CredentialProvider | undefined)[]
}

interface Slot extends WeightedKey {
  readonly provider?: CredentialProvider
}

/**
 * Reads the keys. Blank and absent keys are ignored, so that an unset environment variable means "not configured".
 * @throws TypeError for an invalid key, a weight that is not a positive number, and two providers with one `slot`.
 */
export function keyPool(given: ApiKeys): KeyPool {
  const list = typeof given === 'string' || typeof given === 'function' ? [given] : (given ?? [])
  if (!Array.isArray(list)) throw new TypeError('apiKey must be a string, a credential provider, or a list of these')
  const slots = list
    .filter((entry) => (entry ?? undefined) !== undefined)
    .map(slotOf)
    .filter(({ key, provider }) => provider !== undefined || key !== '')
  for (const { weight } of slots) {
    if (!(Number.isFinite(weight) && weight > 0))
      throw new TypeError(`the weight of a key must be a positive number, not ${weight}`)
  }
  const names = slots.flatMap(({ provider }) => provider?.slot ?? [])
  const twice = names.find((name, place) => names.indexOf(name) !== place)
  if (twice !== undefined) throw new TypeError(`two credential providers have the slot ${JSON.stringify(twice)}`)
  return {
    apiKeys: slots.map(({ key }) => key),
    ...(slots.length > 0 && list.some((entry) => typeof entry === 'object')
      ? { keyWeights: slots.map(({ weight }) => weight) }
      : {}),
    ...(slots.some(({ provider }) => provider !== undefined)
      ? { credentialProviders: slots.map(({ provider }) => provider) }
      : {}),
  }
}

function slotOf(entry: string | WeightedKey | CredentialProvider): Slot {
  if (typeof entry === 'function') return { key: '', weight: 1, provider: entry }
  if (typeof entry === 'string') return { key: entry.trim(), weight: 1 }
  return { key: entry.key.trim(), weight: entry.weight }
}

type Accepted = 'application/json' | 'text/event-stream' | '*/*'

/** Returns the headers of a JSON POST, by key and kind of answer, as a flat list. */
export type KeyHeaders = (apiKey: string, accept: Accepted) => readonly string[]

/** Maximum number of keys whose headers are cached. */
export const MAX_KEPT_KEYS = 1_000

/**
 * Creates headers that carry a key in `name`, after `prefix`. Answers are requested uncompressed, because they are passed on and
 * read unchanged. An empty key sends no credential.
 *
 * The list is created once per key: Node would copy and check a text that is joined again for each call.
 */
export function keyHeaders(name: string, prefix = ''): KeyHeaders {
  const byType: Readonly<Record<Accepted, Map<string, readonly string[]>>> = {
    'application/json': new Map(),
    'text/event-stream': new Map(),
    '*/*': new Map(),
  }
  return (apiKey, accept) => {
    const kept = byType[accept]
    const known = kept.get(apiKey)
    if (known !== undefined) return known
    const headers = ['content-type', 'application/json', 'accept', accept, 'accept-encoding', 'identity']
    if (apiKey !== '') headers.push(name, `${prefix}${apiKey}`)
    // With continuous key rotation, old keys must make room for new ones.
    if (kept.size >= MAX_KEPT_KEYS) kept.clear()
    kept.set(apiKey, headers)
    return headers
  }
}

/** Headers with a bearer key. */
export const bearerHeaders: KeyHeaders = keyHeaders('authorization', 'Bearer ')

const REDACTED = '[redacted]'

// Vendors repeat keys in error texts, whole or masked in the middle ("sk-abcd****wxyz").
const CREDENTIAL_PATTERNS: readonly RegExp[] = [
  /\bBearer\s+[^\s"',;]+/gi,
  /\bsk-[\w*.-]{6,}/g,
  /\b(?:pa|al|st)-[\w*.-]{16,}/g,
  // Tokens that expire are in no list of keys: Google's, JSON Web Tokens, Bedrock's keys, and AWS's text of a signed request.
  /\bya29\.[\w.-]+/g,
  /\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}/g,
  /\bbedrock-api-key-[\w+/=-]+/g,
  /\bx-amz-security-token[:=]\s*[^\s"',;&]+/gi,
]

// Shorter values would also remove ordinary words.
const MIN_REDACTED_LENGTH = 8

/** Removes credentials from a vendor's text: the given keys anywhere, and anything that looks like a key. */
export function redactCredentials(text: string, apiKeys: readonly string[]): string {
  let clean = text
  for (const key of apiKeys) if (key.length >= MIN_REDACTED_LENGTH) clean = clean.replaceAll(key, REDACTED)
  for (const pattern of CREDENTIAL_PATTERNS) clean = clean.replace(pattern, REDACTED)
  return clean
}
