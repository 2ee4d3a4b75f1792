import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { VendorFailure, WireAnswer } from '../vendor.ts'
import { isContextOverflow } from './openai-error.ts'
import { type KeyPool, redactCredentials, vendorAddress } from './vendor-options.ts'

/** Error classification by token (google.rpc codes; Interactions API, "Errors"). */
const KINDS: ReadonlyMap<string, VendorFailure['kind']> = new Map([
  ['INVALID_ARGUMENT', 'caller'],
  ['OUT_OF_RANGE', 'caller'],
  ['invalid_request', 'caller'],
  ['content_blocked', 'caller'],
  // The vendor uses it for the account: the operator must change region or plan.
  ['FAILED_PRECONDITION', 'operator'],
  ['UNAUTHENTICATED', 'operator'],
  ['PERMISSION_DENIED', 'operator'],
  // The model was retired or never existed.
  ['NOT_FOUND', 'operator'],
  ['UNIMPLEMENTED', 'operator'],
  ['RESOURCE_EXHAUSTED', 'rate_limited'],
  ['ABORTED', 'unavailable'],
  ['ALREADY_EXISTS', 'unavailable'],
  ['CANCELLED', 'unavailable'],
  ['INTERNAL', 'unavailable'],
  ['UNKNOWN', 'unavailable'],
  ['DATA_LOSS', 'unavailable'],
  ['UNAVAILABLE', 'unavailable'],
  ['DEADLINE_EXCEEDED', 'timeout'],
])

/** Error classification by HTTP status, for answers of proxies and unknown tokens. */
const KINDS_BY_STATUS: ReadonlyMap<number, VendorFailure['kind']> = new Map([
  [401, 'operator'],
  [402, 'operator'],
  [403, 'operator'],
  [404, 'operator'],
  [408, 'timeout'],
  [409, 'unavailable'],
  [429, 'rate_limited'],
  [499, 'unavailable'],
  [501, 'operator'],
  [504, 'timeout'],
])

const MENTIONS_MODEL = /\bmodels?\b/i

/** How the vendor rejects a file that a caller names by address: "You do not have permission to access the File …". */
const MENTIONS_FILE = /\bfiles?\b/i

/** "API key not valid. …", "API key expired. …". Matched from the start, because errors quote the names of tools. */
const BAD_KEY = /^API key (?:not|expired)\b/i

const GOOGLE_KEYS = /\bAIza[\w-]{8,}|\bya29\.[\w.-]{8,}|\bAQ\.[\w-]{16,}/g

/** Converts an error object to a failure. `status` is that of the answer, or 0 inside a stream. */
export function googleFailure(error: GoogleError, status: number, apiKeys: readonly string[] = []): VendorFailure {
  const kind = kindOf(error, status)
  return {
    kind,
    ...(kind === 'operator' ? { concerns: concernOf(error, error.httpStatus ?? status) } : {}),
    ...(kind === 'caller' && isContextOverflow(error.message) ? { concerns: 'size' } : {}),
    status,
    message: redactGoogleKeys(error.message, apiKeys),
    code: error.token,
    ...(error.retryDelaySeconds === undefined ? {} : { retryAfterSeconds: error.retryDelaySeconds }),
  }
}

/** Removes keys from a text: the given ones, and anything that looks like a Google credential. */
export function redactGoogleKeys(text: string, apiKeys: readonly string[]): string {
  return redactCredentials(text, apiKeys).replace(GOOGLE_KEYS, '[redacted]')
}

/** A 403 concerns the key unless it names a model. Quotas name their scope. 400 and 404 follow the status. */
function concernOf(error: GoogleError, status: number): VendorFailure['concerns'] {
  if (hasKeyReason(error)) return 'key'
  if (status === 403 && MENTIONS_MODEL.test(error.message)) return 'model'
  if (error.quotaIds.length > 0) return error.quotaIds.every((id) => id.includes('PerModel')) ? 'model' : 'key'
  return undefined
}

function hasKeyReason({ reasons }: GoogleError): boolean {
  return reasons.some((reason) => reason.startsWith('API_KEY_'))
}

function kindOf(error: GoogleError, status: number): VendorFailure['kind'] {
  // A bad key is answered with 400 INVALID_ARGUMENT, but is not the caller's fault.
  if (hasKeyReason(error) || BAD_KEY.test(error.message)) return 'operator'
  const statusToJudge = error.httpStatus ?? status
  const token = error.token ?? ''
  const kind = KINDS.get(token) ?? KINDS.get(token.toUpperCase()) ?? googleKindByStatus(statusToJudge)
  // Callers choose the file. A key without rights is rejected whatever the request contains.
  const isAboutFile = MENTIONS_FILE.test(error.message) && !MENTIONS_MODEL.test(error.message)
  if (kind === 'operator' && (statusToJudge === 403 || statusToJudge === 404) && isAboutFile) return 'caller'
  // Waiting does not help against a daily quota.
  if (kind === 'rate_limited' && error.quotaIds.some((id) => id.includes('PerDay'))) return 'operator'
  return kind
}

/** Returns the kind of a status without an error object. */
export function googleKindByStatus(status: number): VendorFailure['kind'] {
  const known = KINDS_BY_STATUS.get(status)
  if (known !== undefined) return known
  if (status >= 400 && status < 500) return 'caller'
  return status >= 500 ? 'unavailable' : 'invalid_response'
}

/** A Google error in any envelope. */
export interface GoogleError {
  /** HTTP status that the error itself states, if any. */
  readonly httpStatus: number | undefined
  /** `INVALID_ARGUMENT`, or in newer APIs a lower-case code such as `invalid_request`. */
  readonly token: string | undefined
  readonly message: string
  /** `ErrorInfo.reason`: `API_KEY_INVALID`. */
  readonly reasons: readonly string[]
  /** `QuotaFailure.violations[].quotaId`: the exceeded limits. */
  readonly quotaIds: readonly string[]
  /** `RetryInfo.retryDelay` in seconds. */
  readonly retryDelaySeconds: number | undefined
}

/**
 * Reads an error body: an object or an array of one, with a code that is a number (`google.rpc.Status`) or a string (Interactions
 * API). Returns `undefined` if the value is not an error.
 */
export function googleErrorFrom(value: unknown): GoogleError | undefined {
  const body: unknown = Array.isArray(value) ? value[0] : value
  const error = isJsonObject(body) ? body['error'] : undefined
  if (typeof error === 'string') return { ...EMPTY, message: error }
  if (!isJsonObject(error)) return undefined
  const { code, status, message } = error
  const details = (Array.isArray(error['details']) ? error['details'] : []).filter(isJsonObject)
  return {
    httpStatus: typeof code === 'number' ? code : undefined,
    token: typeof status === 'string' ? status : typeof code === 'string' ? code : undefined,
    message: typeof message === 'string' ? message : '',
    reasons: details.flatMap((detail) => texts(detail['reason'])),
    quotaIds: details
      .flatMap((detail) => (Array.isArray(detail['violations']) ? detail['violations'] : []))
      .flatMap((violation) => (isJsonObject(violation) ? texts(violation['quotaId']) : [])),
    retryDelaySeconds: details.map((detail) => seconds(detail['retryDelay'])).find((delay) => delay !== undefined),
  }
}

const EMPTY: GoogleError = {
  httpStatus: undefined,
  token: undefined,
  message: '',
  reasons: [],
  quotaIds: [],
  retryDelaySeconds: undefined,
}

function texts(value: unknown): string[] {
  return typeof value === 'string' ? [value] : []
}

/** Parses a duration in protobuf's JSON form: `21.5s`. */
function seconds(value: unknown): number | undefined {
  const digits = typeof value === 'string' ? /^(\d+(?:\.\d+)?)s$/.exec(value)?.[1] : undefined
  return digits === undefined ? undefined : Number(digits)
}

/** Where to call models at Google Cloud. */
export interface GoogleCloudOptions {
  /** Id of the billed project. Optional with a key of express mode. */
  readonly project?: string | undefined
  /** `global`, the multi-regions `us` and `eu`, or a region such as `europe-west4`. */
  readonly location?: string | undefined
  /** Replaces the host of the location, with or without `/v1`. */
  readonly baseURL?: string | undefined
}

/** The address of the models of a location. */
export interface GoogleCloudAddress {
  readonly origin: string
  /** Path before `/publishers/…` and `/endpoints/…`. */
  readonly path: string
  /** Absent in express mode. */
  readonly place: { readonly project: string; readonly location: string } | undefined
}

const REGION = /^[a-z]+-[a-z]+\d{1,2}$/
const PROJECT = /^(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$|^\d{4,20}$/
const LOCATIONS = 'global, us, eu, or a region such as europe-west4'

/**
 * Returns the address of a location (Google Cloud, "Generative AI locations"). Keys without a project use express mode, which has
 * one host and no locations.
 * @throws TypeError naming the option and the variable that is missing or invalid.
 */
export function googleCloudAddress(
  factory: string,
  { project, location, baseURL }: GoogleCloudOptions,
  { apiKeys }: Pick<KeyPool, 'apiKeys'>,
  version = 'v1',
): GoogleCloudAddress {
  checkKeys(factory, apiKeys)
  const isExpress = project === undefined && location === undefined && apiKeys.length > 0 && !apiKeys.includes('')
  if (isExpress) {
    const { origin, prefix } = vendorAddress(baseURL ?? hostOf('global'), `/${version}`)
    return { origin, path: `${prefix}/${version}`, place: undefined }
  }
  if (project === undefined)
    throw new TypeError(`${factory}: set project (GOOGLE_CLOUD_PROJECT) to the id of the project that pays`)
  if (!PROJECT.test(project))
    throw new TypeError(
      `${factory}: project (GOOGLE_CLOUD_PROJECT) must be a project id, such as my-project-123: ${JSON.stringify(project)}`,
    )
  if (location === undefined) throw new TypeError(`${factory}: set location (GOOGLE_CLOUD_LOCATION) to ${LOCATIONS}`)
  if (!['global', 'us', 'eu'].includes(location) && !REGION.test(location))
    throw new TypeError(
      `${factory}: location (GOOGLE_CLOUD_LOCATION) must be ${LOCATIONS}: ${JSON.stringify(location)}`,
    )
  const { origin, prefix } = vendorAddress(baseURL ?? hostOf(location), `/${version}`)
  const path = `${prefix}/${version}/projects/${encodeURIComponent(project)}/locations/${location}`
  return { origin, path, place: { project, location } }
}

/** Hosts of multi-regions have another form than those of regions. */
function hostOf(location: string): string {
  if (location === 'global') return 'https://aiplatform.googleapis.com'
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`
  return `https://${location}-aiplatform.googleapis.com`
}

function checkKeys(factory: string, apiKeys: readonly string[]): void {
  if (apiKeys.some((key) => key.startsWith('ya29.')))
    throw new TypeError(
      `${factory}: apiKey holds an access token, which ends after an hour: pass googleDefaultCredentials() of signalbox/credentials`,
    )
}

/** Adds the setting to change to an operator's failure, unless Google's text names it. */
export function withRemedy(
  failure: VendorFailure,
  answer: WireAnswer,
  place: GoogleCloudAddress['place'],
): VendorFailure {
  if (failure.kind !== 'operator') return failure
  const error = googleErrorFrom(parseVendorJson(new TextDecoder().decode(answer.body)))
  const remedy = remedyFor(failure, error, place)
  if (remedy === undefined) return failure
  const isOfKey = answer.status === 401 || answer.status === 403
  return { ...failure, ...(isOfKey ? { concerns: 'key' } : {}), message: `${failure.message} (${remedy})` }
}

function remedyFor(
  { status, message }: VendorFailure,
  error: GoogleError | undefined,
  place: GoogleCloudAddress['place'],
): string | undefined {
  const { project, location } = place ?? { project: 'of the key', location: 'global' }
  const reasons = error?.reasons ?? []
  if (reasons.includes('SERVICE_DISABLED')) return `enable the Vertex AI API in the project ${project}`
  if (reasons.includes('CONSUMER_INVALID') || /project .{0,200}(?:not found|invalid)/i.test(message))
    return `set project (GOOGLE_CLOUD_PROJECT): it is ${project}`
  switch (status) {
    case 401:
      return 'renew the credentials: check GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login'
    case 403:
      return `give the account of the credentials the role Vertex AI User (roles/aiplatform.user) in the project ${project}, or set another project (GOOGLE_CLOUD_PROJECT)`
    case 400:
    case 404:
      return `check the id of the model, and set location (GOOGLE_CLOUD_LOCATION) to one that has it, such as global: it is ${location}`
    default:
      return undefined
  }
}
