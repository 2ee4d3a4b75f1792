// See docs/decisions/0014-response-cache.md.

import { Buffer } from 'node:buffer'
import { createHash, hash } from 'node:crypto'
import { type CatalogModel, isPattern, starOf } from '../../catalog/model.ts'
import { GatewayError } from '../../core/errors.ts'
import type { CachedAnswers, CachedPart } from '../../endpoints/answer-json.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { endUserOf } from '../../stores/principal.ts'
import type { ResponseCache } from '../../stores/response-cache.ts'
import type { Vendor } from '../../vendors/vendor.ts'
import { asBuffer, byteLengthOf } from '../../wire/chunks.ts'
import { type JsonMember, outlineMembers } from '../../wire/json-edits.ts'
import type { Admitted } from '../call-record.ts'
import { Flight } from './cache-plan.ts'

/** Callers that share an entry. */
export type CachePartition = 'account' | 'key' | 'user'

/** Rule for requests that are answered from the cache. */
export interface CacheRule {
  /** Endpoint ids. Default: all that can be cached. */
  readonly endpoints?: readonly string[] | undefined
  /** Public ids of models, with at most one `*` each. Default all. */
  readonly models?: readonly string[] | undefined
  /**
   * `deterministic` (default): requests that should get the same answer each time, namely embeddings, and generated text with an
   * explicit `temperature: 0`. `any`: all requests.
   */
  readonly sampling?: 'deterministic' | 'any' | undefined
  /**
   * Callers that share entries. Defaults to that of the cache. `gateway`: all accounts share entries and can see each other's
   * answers.
   */
  readonly partition?: CachePartition | 'gateway' | undefined
  /** Time for which an answer is fresh, in milliseconds. Defaults to that of the cache. */
  readonly ttlMs?: number | undefined
}

/** Response cache of a gateway, with its defaults. */
export interface CacheSettings {
  readonly store: ResponseCache
  readonly rules: readonly CacheRule[]
  /** Whether callers may request the cache by header. */
  readonly callers: 'may-ask' | 'ignored'
  readonly partition: CachePartition
  readonly ttlMs: number
  readonly maxTtlMs: number
  /** Whether concurrent equal requests cause only one call to a vendor. */
  readonly collapse: boolean
  /** Returns a fingerprint of an endpoint's hooks that change requests or the calls to a vendor. */
  fingerprint(endpoint: Endpoint): string
}

/** Cache settings of a request. */
export interface CacheRequest {
  readonly rules: CachedAnswers<Admitted['body'], object>
  /** Mode that the caller requested, or `undefined` for none. */
  readonly mode: 'use' | 'refresh' | 'only' | undefined
  readonly ttlMs: number
  readonly partition: readonly string[]
  /** Whether the entry belongs to only one account. */
  readonly isOfAccount: boolean
}

/** Statistics of the cache in this process. */
export interface CacheStats {
  /** Number of answers from the cache. */
  hits: number
  /** Number of requests without an entry. */
  misses: number
  /** Number of stored answers. */
  writes: number
  /** Number of writes that the store rejected. */
  failedWrites: number
}

const MODES: ReadonlySet<string> = new Set(['use', 'refresh', 'off', 'only'])
const MAX_PARTITION = 200

/** The response cache as the pipeline uses it. */
export class AnswerCache {
  readonly settings: CacheSettings
  readonly stats: CacheStats = { hits: 0, misses: 0, writes: 0, failedWrites: 0 }
  readonly #flights = new Map<string, Flight>()

  constructor(settings: CacheSettings) {
    this.settings = settings
  }

  /**
   * Returns the cache settings of a request, or `undefined` if it bypasses the cache.
   * @throws GatewayError `invalid_request` for a header with an unknown value.
   */
  wishOf(admitted: Admitted): CacheRequest | undefined {
    const { endpoint, body, bytes, request, principal, chain, routeOverride, hostCommit, answerId } = admitted
    const { cached: rules } = endpoint
    const model = chain[0]!
    const mayAsk = this.settings.callers === 'may-ask'
    const mode = mayAsk ? modeOf(request.header('x-signalbox-cache')) : undefined
    const askedMs = mayAsk ? ttlOf(request.header('x-signalbox-cache-ttl')) : undefined
    const narrow = partitionOf(request.header('x-signalbox-cache-partition'))
    if (rules === undefined || mode === 'off') return undefined
    if (bytes === undefined && rules.parts === undefined) return undefined
    // The host chose the vendor or writes rows with the charge, or the answer is read later by its id.
    if ((routeOverride ?? hostCommit ?? answerId) !== undefined) return undefined
    const { settings } = this
    const rule = settings.rules.find((one) => applies(one, endpoint.id, model, () => rules.isDeterministic(body)))
    if (rule === undefined && mode === undefined) return undefined
    if (rules.isExcluded(body)) return undefined
    const who = rule?.partition ?? settings.partition
    const partition = [who, ...(narrow === undefined ? NO_SUBJECTS : [narrow])]
    if (who !== 'gateway') partition.push(principal.accountId)
    if (who === 'key') partition.push(principal.keyId)
    if (who === 'user') {
      const user = endUserOf(principal, body)
      // Users without a name would share private entries.
      if (user === undefined) return undefined
      partition.push(user)
    }
    const ttlMs = Math.min(askedMs ?? rule?.ttlMs ?? settings.ttlMs, settings.maxTtlMs)
    return { rules, mode, ttlMs, partition, isOfAccount: who !== 'gateway' }
  }

  /** Whether the caller accepts only a cached answer. */
  wantsOnly(request: Admitted['request']): boolean {
    return this.settings.callers === 'may-ask' && request.header('x-signalbox-cache')?.trim().toLowerCase() === 'only'
  }

  /** Returns the key of a request in these generations; see {@link ResponseCache.generation}. */
  keyOf(admitted: Admitted, wish: CacheRequest, generations: readonly number[], vendors: Vendors): string | undefined {
    const { endpoint, body, bytes, chain, request } = admitted
    const { rules, partition } = wish
    const model = chain[0]!
    const headers = rules.headers === undefined ? NO_HEADERS : headersOf(rules, model, vendors, request)
    const form = rules.form?.(body) ?? ''
    const fingerprint = this.settings.fingerprint(endpoint)
    const parts: KeyParts = { generations, partition, path: endpoint.path, model, form, headers, fingerprint }
    if (bytes !== undefined) return cacheKey(parts, bytes, rules.leftOut)
    return rules.parts && formKey(parts, rules.parts(body), rules.leftOut)
  }

  /** Returns the requests in flight with this key, or `undefined` if there are none. */
  flightOf(key: string): Flight | undefined {
    return this.#flights.get(key)
  }

  takeOff(key: string): Flight {
    const flight = new Flight(() => this.#flights.delete(key))
    this.#flights.set(key, flight)
    return flight
  }
}

function modeOf(header: string | undefined): CacheRequest['mode'] | 'off' {
  if (header === undefined) return undefined
  const mode = header.trim().toLowerCase()
  if (!MODES.has(mode)) throw headerError('x-signalbox-cache', 'must be use, refresh, only or off')
  return mode as CacheRequest['mode'] | 'off'
}

function ttlOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined
  if (!/^[1-9]\d{0,8}$/.test(header)) throw headerError('x-signalbox-cache-ttl', 'must be a whole number of seconds')
  return Number(header) * 1000
}

type Vendors = ReadonlyMap<string, Vendor>

const NO_SUBJECTS: readonly string[] = []
const NO_HEADERS: readonly string[] = []

/** Callers may separate their own entries further, beyond the partition of the operator. */
function partitionOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length <= MAX_PARTITION) return header
  throw headerError('x-signalbox-cache-partition', `must have at most ${MAX_PARTITION} characters`)
}

function headerError(param: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${problem}`, param })
}

function applies(
  { endpoints, models, sampling = 'deterministic' }: CacheRule,
  endpointId: string,
  model: CatalogModel,
  isDeterministic: () => boolean,
): boolean {
  if (endpoints !== undefined && !endpoints.includes(endpointId)) return false
  if (models !== undefined && !models.some((pattern) => isMatch(pattern, model.id))) return false
  return sampling === 'any' || isDeterministic()
}

function isMatch(pattern: string, id: string): boolean {
  return isPattern(pattern) ? starOf(pattern, id) !== undefined : pattern === id
}

/** Returns name and value of each header that affects the answer at one of the vendors of a model. */
function headersOf(
  rules: CacheRequest['rules'],
  { vendor, routes }: CatalogModel,
  vendors: Vendors,
  request: Admitted['request'],
): readonly (string | undefined)[] {
  const ids = routes?.map((route) => route.vendor) ?? [vendor]
  const names = new Set(
    ids.flatMap((id) => {
      const offered = vendors.get(id)
      return offered === undefined ? [] : (rules.headers?.(offered) ?? [])
    }),
  )
  return [...names].flatMap((name) => [name, request.header(name)])
}

/** Version of the formats of entries and keys. Increase it when either changes. */
const FORMAT_VERSION = 2

/** Parts of a key in addition to the members of the request: everything that affects the answer or its readers. */
export interface KeyParts {
  /** Generation of all entries, then of the account if it has its own entries. */
  readonly generations: readonly number[]
  /** Callers that share the entry. */
  readonly partition: readonly string[]
  readonly path: string
  readonly model: CatalogModel
  /** Form of the answer: stream or whole, and other ignored members that affect it. */
  readonly form: string
  /** Names and values of headers that decide the answer. */
  readonly headers: readonly (string | undefined)[]
  /** Fingerprint of the rules that may have changed the request. */
  readonly fingerprint: string
}

/**
 * Returns the key of a request: a digest of the parts and of each member of the body that is not ignored, by name, length and
 * bytes. Requests that parse differently in such a member never have the same key. Undefined for a body that is not an object.
 */
export function cacheKey(parts: KeyParts, body: Uint8Array, leftOut: ReadonlySet<string>): string | undefined {
  const members = outlineMembers([body])
  if (members === undefined) return undefined
  const deciding: JsonMember[] = []
  for (const member of members) if (!leftOut.has(member.name)) deciding.push(member)
  deciding.sort(byName)
  let head = headOf(parts)
  // The head contains the lengths, so the values need no separator.
  for (const { name, valueStart, end } of deciding) head += `${withLength(name)} ${end - valueStart}`
  return digestOf(head, asBuffer(body), deciding)
}

/**
 * Returns the key of a form: a digest of name, length and bytes of each part that is not ignored. Parts of one name stay in order.
 */
function formKey(parts: KeyParts, form: readonly CachedPart[], leftOut: ReadonlySet<string>): string {
  const deciding = form.filter(({ name }) => !leftOut.has(name)).sort(byName)
  let head = headOf(parts)
  for (const { name, chunks } of deciding) head += `${withLength(name)} ${byteLengthOf(chunks)}`
  const digest = createHash('sha256').update(head)
  for (const { chunks } of deciding) for (const chunk of chunks) digest.update(chunk)
  return digest.digest('base64url')
}

/** Each text follows its length, so that two lists of parts never have the same head. */
function headOf({ generations, partition, path, model, form, headers, fingerprint }: KeyParts): string {
  let head = `${FORMAT_VERSION} ${generations.join()} ${revisionOf(model)} ${partition.length}`
  for (const text of partition) head += withLength(text)
  head += withLength(path) + withLength(form) + withLength(fingerprint) + headers.length
  // A missing header differs from an empty one.
  for (const value of headers) head += value === undefined ? ' -' : withLength(value)
  return head
}

function withLength(text: string): string {
  return ` ${text.length}:${text}`
}

/** One call for all of a small request is cheaper than one call per member. Larger data is not copied. */
const scratch = Buffer.allocUnsafeSlow(16 * 1024)
const MAX_BYTES_OF_CHARACTER = 3

function digestOf(head: string, body: Buffer, members: readonly JsonMember[]): string {
  if (head.length * MAX_BYTES_OF_CHARACTER + body.byteLength > scratch.byteLength) {
    const digest = createHash('sha256').update(head)
    for (const { valueStart, end } of members) digest.update(body.subarray(valueStart, end))
    return digest.digest('base64url')
  }
  let length = scratch.write(head)
  for (const { valueStart, end } of members) length += body.copy(scratch, length, valueStart, end)
  return hash('sha256', scratch.subarray(0, length), 'base64url')
}

type Named = Pick<JsonMember, 'name'>

function byName({ name: left }: Named, { name: right }: Named): number {
  return left < right ? -1 : left === right ? 0 : 1
}

const revisions = new WeakMap<CatalogModel, string>()

/** Returns a digest of the catalog's facts of a model: a changed row may mean another model. */
function revisionOf(model: CatalogModel): string {
  let revision = revisions.get(model)
  if (revision === undefined) {
    revision = createHash('sha256')
      .update(Buffer.from(JSON.stringify(model)))
      .digest('base64url')
    revisions.set(model, revision)
  }
  return revision
}
