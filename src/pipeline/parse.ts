import { Buffer } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import type { CatalogModel } from '../catalog/model.ts'
import type { ModelFacts } from '../catalog/model-facts.ts'
import { isInScope } from '../catalog/model-scope.ts'
import { endOfTurn, isLargeBody } from '../core/calls-in-flight.ts'
import { GatewayError } from '../core/errors.ts'
import { exactJsonText, readExactCallerJson } from '../core/exact-json.ts'
import { bodyError, type GatewayRequest, unreadableBody } from '../core/exchange.ts'
import { type CallerJson, isJsonObject } from '../core/json.ts'
import { freeMemory } from '../core/memory-use.ts'
import type { CallerUrl, Endpoint } from '../endpoints/endpoint.ts'
import { IDEMPOTENCY_RETENTION_MS, type IdempotencyClaim } from '../stores/idempotency-store.ts'
import { checkPublicUrl } from '../transport/egress.ts'
import { joinChunks } from '../wire/chunks.ts'
import { readForm } from '../wire/form.ts'
import { mediaType } from '../wire/headers.ts'
import type { Form } from '../wire/write-form.ts'
import { modelDenied } from './authenticate.ts'
import type { Authenticated, Parsed, ParsedRequest, Shaped } from './call-record.ts'
import { measureInput } from './estimate.ts'
import { unknownModel } from './model-notices.ts'
import { vendorWithoutKey } from './notices.ts'
import { isConfigured, type PipelineContext } from './pipeline-context.ts'

/**
 * Reads the body, finds the model, and checks the request by the model's shape.
 * @throws GatewayError for a body that cannot be read (`unsupported_media_type`, `body_too_large`, `body_consumed`,
 *   `client_closed_request`) or cannot be used (`invalid_json`, `json_too_deep`, `invalid_request`), an unknown model, a model of another
 *   endpoint, or a vendor that is not configured.
 */
export async function parse(context: PipelineContext, authenticated: Authenticated): Promise<Parsed> {
  const { called, request, principal, requestId, observation } = authenticated
  const isJson = takesJson(authenticated)
  observation?.waits()
  const reading = readBody(context, request)
  const chunks = await (observation === undefined ? reading : reading.finally(() => observation.continueTask()))
  const received = isJson ? joined(request, chunks) : await formOf(authenticated, chunks)
  const { value, bytes } = isForm(received)
    ? { value: called.formBody!(received), bytes: undefined }
    : withDefaultModel(called, readExactCallerJson(received, called.exactMembers))
  const isLarge = isLargeBody(bytes)
  if (isLarge) await endOfTurn()
  const model = requestedModel(context, authenticated, value)
  const endpoint = called.shapes === undefined ? called : shapeOf(called, called.shapes, model)
  const shaped = authenticated.shaped(endpoint)
  const body = endpoint.parse(value, factsOf(context, endpoint, model))
  if (isLarge) await endOfTurn()
  const chain = modelChain(context, shaped, { model, isShaped: called.shapes !== undefined })
  checkCallerUrls(context, endpoint.callerUrls?.(body), chain)
  const { textBytes, denseTokens, media } = measureInput(endpoint, { body, bytes })
  if (isLarge) await endOfTurn()
  return shaped.parsed({
    body,
    bytes,
    formChunks: !isJson && request.ownsBody === true ? chunks : undefined,
    textBytes,
    denseTokens,
    media,
    isStream: endpoint.isStream(body),
    chain,
    billingFields: endpoint.priceFields?.(body, model) ?? NO_FIELDS,
    claim: claimOf(context, request, { accountId: principal.accountId, requestId }, received),
  })
}

/** @throws GatewayError `body_too_large`, `body_consumed` or `client_closed_request`. */
function readBody(
  { bodyLimitBytes }: Pick<PipelineContext, 'bodyLimitBytes'>,
  request: GatewayRequest,
): Promise<readonly Uint8Array[]> {
  return new Promise((resolve, reject) => {
    request.readBody(bodyLimitBytes, (failure, chunks) => {
      if (failure === undefined) resolve(chunks)
      else reject(bodyError(failure, bodyLimitBytes))
    })
  })
}

/** Replacement of a request by a hook: a JSON body, or a form that its endpoint has changed. */
export type Replacement = { readonly value: unknown } | { readonly form: Parsed['body'] }

/**
 * Checks a replacement request by the same rules. Its endpoint, the form of its answer and its Idempotency-Key stay.
 * @throws GatewayError of {@link parse}; TypeError for a body that is not JSON, or that would change the form of the answer.
 */
export function reparse(context: PipelineContext, parsed: Parsed, replacement: Replacement): ParsedRequest {
  const { called, endpoint, claim } = parsed
  const { value, bytes } =
    'form' in replacement
      ? { value: replacement.form, bytes: undefined }
      : withDefaultModel(called, sentJson(context, called, replacement.value))
  const model = requestedModel(context, parsed, value)
  const own = called.shapes === undefined ? called : shapeOf(called, called.shapes, model)
  if (own !== endpoint) throw new TypeError(`the model ${JSON.stringify(model.id)} accepts requests of another shape`)
  const body = 'form' in replacement ? replacement.form : endpoint.parse(value, factsOf(context, endpoint, model))
  const chain = modelChain(context, parsed, { model, isShaped: called.shapes !== undefined })
  checkCallerUrls(context, endpoint.callerUrls?.(body), chain)
  const isStream = endpoint.isStream(body)
  if (isStream !== parsed.isStream) throw new TypeError('a request cannot change whether it streams')
  const billingFields = endpoint.priceFields?.(body, model) ?? NO_FIELDS
  return { body, bytes, ...measureInput(endpoint, { body, bytes }), isStream, chain, billingFields, claim }
}

/** Encodes and parses a value like a received body. */
function sentJson({ bodyLimitBytes }: PipelineContext, { exactMembers }: Endpoint, value: unknown): CallerJson {
  const text = exactJsonText(value) as string | undefined
  if (text === undefined) throw new TypeError('the body is not JSON')
  const bytes = Buffer.from(text)
  if (bytes.byteLength > bodyLimitBytes) throw bodyError('too_large', bodyLimitBytes)
  return readExactCallerJson(bytes, exactMembers)
}

/** Adds the endpoint's default model to JSON that names none. */
function withDefaultModel({ defaultModel }: Endpoint, json: CallerJson): CallerJson {
  if (defaultModel === undefined || !isJsonObject(json.value) || json.value['model'] !== undefined) return json
  const value = { model: defaultModel, ...json.value }
  return { value, bytes: Buffer.from(exactJsonText(value)) }
}

const NO_FIELDS = {}

/** Received body: the bytes of a JSON text, or the parts of a form. */
type ReceivedBody = Uint8Array | Form

/** Distinguishes forms from bytes. */
function isForm(received: ReceivedBody): received is Form {
  return !(received instanceof Uint8Array)
}

/**
 * Whether the body is JSON and not a form.
 * @throws GatewayError `unsupported_media_type`, before anything is read.
 */
function takesJson({ request, called }: Authenticated): boolean {
  const type = mediaType(request.header('content-type'))
  if (type === 'application/json') return true
  const takesForms = called.formBody !== undefined
  if (takesForms && type === 'multipart/form-data') return false
  const types = takesForms ? 'multipart/form-data or application/json' : 'application/json'
  throw new GatewayError('unsupported_media_type', { message: `Send the body as Content-Type: ${types}.` })
}

/** @throws GatewayError `invalid_request` for a form that cannot be read. */
async function formOf({ request, called }: Authenticated, chunks: readonly Uint8Array[]): Promise<Form> {
  try {
    return await readForm(request.header('content-type')!, chunks, called.formLimits)
  } catch (fault) {
    throw unreadableBody(request, fault)
  }
}

/** Returns the bytes of a body. If they were copied, the original is freed. */
function joined(request: GatewayRequest, chunks: readonly Uint8Array[]): Buffer {
  const bytes = joinChunks(chunks)
  if (chunks.length > 1 && request.ownsBody === true) for (const chunk of chunks) freeMemory(chunk)
  return bytes
}

/**
 * Returns the model that a body names.
 * @throws GatewayError `invalid_request` if the body names no model; `model_not_found`, or the endpoint's own error.
 */
function requestedModel(
  context: PipelineContext,
  { called, principal }: Pick<Authenticated, 'called' | 'principal'>,
  value: unknown,
): CatalogModel {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new GatewayError('invalid_request', { message: 'The request body: expected object' })
  }
  const id: unknown = (value as { model?: unknown }).model
  if (typeof id !== 'string' || id === '') {
    throw new GatewayError('invalid_request', { message: 'model: expected the id of a model', param: 'model' })
  }
  const model = context.catalog.find(id)
  if (model !== undefined) return model
  throw unknownModel(context, id, { principal, endpoint: called })
}

/** Returns the facts of a model from its row, and in addition from its vendor. */
function factsOf({ vendors }: PipelineContext, endpoint: Endpoint, model: CatalogModel): ModelFacts {
  if (endpoint.unlistedFacts === undefined || model.routes !== undefined) return model
  const vendor = vendors.get(model.vendor)
  return vendor === undefined ? model : { ...endpoint.unlistedFacts(vendor, model.upstream), ...model }
}

function shapeOf(endpoint: Endpoint, shapes: ReadonlyMap<string, Endpoint>, model: CatalogModel): Endpoint {
  const shape = shapes.get(model.protocol ?? '')
  if (shape === undefined || !model.kinds.includes(endpoint.kind)) throw wrongEndpoint(endpoint, model)
  return shape
}

function wrongEndpoint(endpoint: Endpoint, model: CatalogModel): GatewayError {
  return new GatewayError('endpoint_model_mismatch', {
    message: `The model ${JSON.stringify(model.id)} cannot be used on ${endpoint.path}.`,
    param: 'model',
  })
}

/**
 * Rejects a literal private address, whether the gateway or the vendor would fetch it, because a vendor may be in the operator's
 * own network.
 * @throws GatewayError `invalid_request` with the address.
 */
export function checkCallerUrls(
  context: PipelineContext,
  urls: readonly CallerUrl[] | undefined,
  chain: readonly CatalogModel[],
): void {
  if (urls === undefined) return
  for (const { url, param, isCalledHere } of urls) {
    const check = checkPublicUrl(url, { allowPrivate: context.allowPrivateUrls })
    if (!('reason' in check) || (isCalledHere !== true && fetchesNothing(context, chain))) continue
    throw new GatewayError('invalid_request', { message: `${param}: ${check.reason}`, param })
  }
}

/** Whether every vendor that may answer is declared to fetch nothing. */
function fetchesNothing({ vendors }: PipelineContext, chain: readonly CatalogModel[]): boolean {
  return chain
    .flatMap(({ vendor, routes }) => routes?.map((route) => route.vendor) ?? [vendor])
    .every((id) => vendors.get(id)?.fetchesUrls === false)
}

/** Requested model, and whether its endpoint is one of several shapes. A fallback must have the same shape. */
interface Asked {
  readonly model: CatalogModel
  readonly isShaped: boolean
}

/** Returns the requested model and its fallbacks, without models that this gateway cannot serve. */
function modelChain(context: PipelineContext, shaped: Shaped, { model, isShaped }: Asked): CatalogModel[] {
  const { endpoint, principal } = shaped
  if (!model.kinds.includes(endpoint.kind)) throw wrongEndpoint(endpoint, model)
  const allowed = principal.scopes?.models
  if (!isInScope(allowed, model)) throw modelDenied(model)
  if (model.fallbacks.length === 0 && isConfigured(context, model)) return [model]
  const chain = [model]
  for (const id of model.fallbacks) {
    const fallback = context.catalog.find(id)
    if (fallback?.kinds.includes(endpoint.kind) !== true || (isShaped && fallback.protocol !== model.protocol)) continue
    if (isInScope(allowed, fallback)) chain.push(fallback)
  }
  const usable = chain.filter((row) => isConfigured(context, row))
  if (usable.length === 0) throw notConfigured(context, model)
  return usable
}

/** The caller gets a neutral message, which may reach end users. The log contains the remedy for the operator. */
function notConfigured({ vendors, warnings }: PipelineContext, { id, vendor }: CatalogModel): GatewayError {
  warnings.warn(vendorWithoutKey(vendors, vendor))
  return new GatewayError('model_not_configured', {
    message: `The model ${JSON.stringify(id)} is not available here.`,
    param: 'model',
  })
}

const MAX_IDEMPOTENCY_KEY_LENGTH = 255

/** Caller whose request claims a key. */
interface Claimant {
  readonly accountId: string
  readonly requestId: string
}

/**
 * Returns the claim of a request with an Idempotency-Key.
 * @throws GatewayError `invalid_request` for a key that is too long.
 */
export function claimOf(
  context: PipelineContext,
  request: GatewayRequest,
  claimant: Claimant,
  received: ReceivedBody,
): IdempotencyClaim | undefined {
  const key = idempotencyKeyOf(request)
  return key === undefined ? undefined : claimBy(context, claimant, key, fingerprintOf(request, received))
}

/** Claim of a request whose body is never completely in memory. */
export interface StreamedClaim {
  /** Adds the next chunk of the body. */
  add(piece: Uint8Array): void
  /** Returns the claim after the last chunk. */
  end(): IdempotencyClaim
}

/**
 * Returns the claim of a request with a streamed body; undefined without a key. See {@link claimOf}.
 * @throws GatewayError `invalid_request` for a key that is too long.
 */
export function streamedClaimOf(
  context: PipelineContext,
  request: GatewayRequest,
  claimant: Claimant,
): StreamedClaim | undefined {
  const key = idempotencyKeyOf(request)
  if (key === undefined) return undefined
  const hash = hashOf(request)
  return {
    add: (piece) => void hash.update(piece),
    end: () => claimBy(context, claimant, key, hash.digest('hex')),
  }
}

function idempotencyKeyOf(request: GatewayRequest): string | undefined {
  const key = request.header('idempotency-key')
  if (key === undefined || (key !== '' && key.length <= MAX_IDEMPOTENCY_KEY_LENGTH)) return key
  throw new GatewayError('invalid_request', {
    message: `Idempotency-Key: must have 1 to ${MAX_IDEMPOTENCY_KEY_LENGTH} characters`,
    param: 'Idempotency-Key',
  })
}

function claimBy(
  { clock }: PipelineContext,
  { accountId, requestId }: Claimant,
  key: string,
  fingerprint: string,
): IdempotencyClaim {
  const expiresAtMs = clock.now() + IDEMPOTENCY_RETENTION_MS
  return { accountId, key, fingerprint, expiresAtMs, claimedBy: requestId }
}

function hashOf({ method, path }: GatewayRequest): Hash {
  return createHash('sha256').update(`${method} ${path}\n`)
}

/** Forms are compared part by part, because each request has a different boundary. */
function fingerprintOf(request: GatewayRequest, received: ReceivedBody): string {
  const hash = hashOf(request)
  if (!isForm(received)) return hash.update(received).digest('hex')
  for (const part of received) {
    const size = part.kind === 'file' ? part.byteLength : Buffer.byteLength(part.value)
    const label = part.kind === 'file' ? [part.name, part.filename, part.contentType] : [part.name]
    hash.update(`${JSON.stringify([part.kind, ...label, size])}\n`)
    if (part.kind === 'field') hash.update(part.value)
    else for (const chunk of part.chunks) hash.update(chunk)
  }
  return hash.digest('hex')
}

/**
 * Returns the bytes of a JSON body; empty if there is none.
 * @throws GatewayError `unsupported_media_type`, and the errors of a body that cannot be read.
 */
export async function readJsonBytes(
  context: Pick<PipelineContext, 'bodyLimitBytes'>,
  request: GatewayRequest,
): Promise<Uint8Array> {
  const bytes = joinChunks(await readBody(context, request))
  if (bytes.byteLength > 0 && mediaType(request.header('content-type')) !== 'application/json')
    throw new GatewayError('unsupported_media_type', { message: 'Send the body as Content-Type: application/json.' })
  return bytes
}
