import { parseVendorJson } from '../../core/json.ts'
import type { VendorFailure, WireAnswer } from '../vendor.ts'
import { type GoogleError, googleErrorFrom } from './google-error.ts'
import type { KeyPool } from './key-pool.ts'
import { vendorAddress } from './vendor-address.ts'

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
