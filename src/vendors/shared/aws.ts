import { isJsonObject, nonEmptyText, objectOf, parseVendorJson } from '../../core/json.ts'
import { awsDomain } from '../../credentials/aws.ts'
import { asBuffer } from '../../wire/chunks.ts'
import { firstHeader } from '../../wire/headers.ts'
import type { VendorFailure, WireAnswer } from '../vendor.ts'
import { isContextOverflow, retryAfterFrom } from './openai-error.ts'
import { redactCredentials, type VendorAddress, vendorAddress } from './vendor-options.ts'

type Verdict = Pick<VendorFailure, 'kind' | 'concerns'>

const KEY: Verdict = { kind: 'operator', concerns: 'key' }
const MODEL: Verdict = { kind: 'operator', concerns: 'model' }
const OVERSIZED: Verdict = { kind: 'caller', concerns: 'size' }

/**
 * Verdicts by the name of the exception in lower case: answers have `ThrottlingException`, stream events `throttlingException`
 * (AWS, "Common errors" and the reference of Bedrock's runtime).
 */
const VERDICTS: ReadonlyMap<string, Verdict> = new Map<string, Verdict>([
  ['throttlingexception', { kind: 'rate_limited' }],
  ['toomanyrequestsexception', { kind: 'rate_limited' }],
  ['modelnotreadyexception', { kind: 'rate_limited' }],
  ['servicequotaexceededexception', KEY],
  ['accessdeniedexception', KEY],
  ['accessdenied', KEY],
  ['expiredtokenexception', KEY],
  ['expiredtoken', KEY],
  ['unrecognizedclientexception', KEY],
  ['invalidclienttokenid', KEY],
  ['invalidsignatureexception', KEY],
  ['signaturedoesnotmatch', KEY],
  ['incompletesignatureexception', KEY],
  ['incompletesignature', KEY],
  ['missingauthenticationtokenexception', KEY],
  ['missingauthenticationtoken', KEY],
  ['requesttimetooskewed', KEY],
  ['requestexpired', KEY],
  ['resourcenotfoundexception', MODEL],
  ['unknownoperationexception', MODEL],
  ['validationexception', { kind: 'caller' }],
  ['modeltimeoutexception', { kind: 'timeout' }],
  ['modelerrorexception', { kind: 'unavailable' }],
  ['modelstreamerrorexception', { kind: 'unavailable' }],
  ['internalserverexception', { kind: 'unavailable' }],
  ['internalfailure', { kind: 'unavailable' }],
  ['serviceunavailableexception', { kind: 'unavailable' }],
  ['serviceunavailable', { kind: 'unavailable' }],
])

/** Texts of a bad request that concern the operator: the model's id, region or route. */
const ABOUT_THE_MODEL =
  /^(?:invocation of model id|the (?:provided )?model|this model|access denied)\b.{0,400}(?:on-demand throughput|identifier is invalid|isn['’]t supported on this route|inference profile|end of its life|legacy)/is
/** How the service rejects an account without access: as a bad request. */
const ABOUT_THE_ACCOUNT = /^(?:operation not allowed|your account is not authorized)\b/i
/** Texts that quote the request, where a caller can write all of the others. */
const QUOTES_THE_REQUEST = /^the model returned the following errors\b/i
/** "Too many tokens, please wait before trying again." is a rate limit, not a prompt that is too long. */
const ABOUT_THE_RATE = /^too many (?:tokens|requests)[^.]*(?:wait|try again)/i
const NAMES_MODEL = /\bmodel\b/i
const ABOUT_THE_TIME = /signature (?:expired|not yet current)|too skewed|request has expired/i
const ABOUT_THE_REGION = /scoped to a valid region/i

/** Clock difference that explains a rejected signature. About 5 minutes are allowed. */
const SKEW_MS = 4 * 60 * 1000

/** An exception of the service. */
export interface AwsException {
  /** `ThrottlingException`, without namespace. */
  readonly name: string
  readonly message: string
}

/**
 * Reads an answer in AWS's own layout: the name of an exception in a header or in the body, and a text. Returns `undefined` for
 * other layouts, such as that of another dialect of the service.
 */
export function awsFailure(answer: WireAnswer, nowMs: number, apiKeys: readonly string[]): VendorFailure | undefined {
  const exception = exceptionIn(answer)
  if (exception === undefined) return undefined
  const offsetMs = clockOffsetMs(answer, exception, nowMs)
  const failure = failureOf(exception, answer.status, offsetMs, apiKeys)
  const requestId = firstHeader(answer.headers, 'x-amzn-requestid')
  return {
    ...failure,
    ...(requestId === undefined ? {} : { requestId }),
    ...(offsetMs === undefined ? {} : { clockOffsetMs: offsetMs }),
    ...retryAfterFrom(failure, answer, nowMs),
  }
}

/** Reads an exception of a stream, after 200. */
export function awsStreamFailure(exception: AwsException, apiKeys: readonly string[]): VendorFailure {
  return failureOf(exception, 0, undefined, apiKeys)
}

function failureOf(
  { name, message }: AwsException,
  status: number,
  offsetMs: number | undefined,
  apiKeys: readonly string[],
): VendorFailure {
  const verdict = verdictOf(name.toLowerCase(), message, status)
  const advice = verdict.kind === 'operator' ? adviceFor(name, message, offsetMs) : undefined
  const text = redactCredentials(message === '' ? `The vendor answered with ${name || status}.` : message, apiKeys)
  return {
    ...verdict,
    status,
    message: advice === undefined ? text : `${text} (${advice})`,
    ...(name === '' ? {} : { code: name }),
  }
}

function verdictOf(name: string, message: string, status: number): Verdict {
  if (ABOUT_THE_RATE.test(message)) return { kind: 'rate_limited' }
  const verdict = VERDICTS.get(name) ?? verdictByStatus(status)
  if (verdict.kind === 'caller' && ABOUT_THE_MODEL.test(message) && !QUOTES_THE_REQUEST.test(message)) return MODEL
  if (verdict.kind === 'caller' && ABOUT_THE_ACCOUNT.test(message)) return KEY
  if (verdict.kind === 'caller' && isContextOverflow(message)) return OVERSIZED
  if (name.startsWith('accessdenied') && NAMES_MODEL.test(message)) return MODEL
  return verdict
}

function verdictByStatus(status: number): Verdict {
  if (status === 0 || status >= 500) return { kind: status === 504 ? 'timeout' : 'unavailable' }
  if (status === 429) return { kind: 'rate_limited' }
  if (status === 408) return { kind: 'timeout' }
  if (status === 424) return { kind: 'unavailable' }
  if (status === 404) return MODEL
  if (status === 400 || status === 413 || status === 422) return { kind: 'caller' }
  return status >= 400 ? { kind: 'operator' } : { kind: 'invalid_response' }
}

/** Returns advice for the operator, if any. */
function adviceFor(name: string, message: string, offsetMs: number | undefined): string | undefined {
  if (offsetMs !== undefined) {
    const seconds = Math.round(Math.abs(offsetMs) / 1000)
    return `the clock of this machine is ${seconds} s ${offsetMs > 0 ? 'behind' : 'ahead'}: set it`
  }
  if (ABOUT_THE_TIME.test(message)) return 'set the clock of this machine'
  if (ABOUT_THE_REGION.test(message))
    return 'the vendor and its credential must have the same region: set AWS_REGION, or both'
  if (/^expiredtoken/i.test(name)) return 'renew the session, or let a provider from signalbox/credentials do so'
  if (/on-demand throughput/i.test(message))
    return 'use the id of an inference profile, such as eu.MODEL or global.MODEL'
  if (/model identifier is invalid/i.test(message))
    return 'check the id, and that the region of the vendor has the model'
  if (ABOUT_THE_ACCOUNT.test(message)) return 'ask the support of AWS to open Bedrock to the account, in this region'
  if (/isn['’]t supported on this route/i.test(message)) return 'set protocol of the model to another route'
  return undefined
}

/** Returns the lead of the vendor's clock in milliseconds, if that explains a rejected signature. */
function clockOffsetMs(answer: WireAnswer, { name, message }: AwsException, nowMs: number): number | undefined {
  const isAboutSignature = /^(?:invalidsignature|signaturedoesnotmatch|requesttimetooskewed|requestexpired)/i.test(name)
  // An answer from a cache has an old date.
  if ((!isAboutSignature && !ABOUT_THE_TIME.test(message)) || firstHeader(answer.headers, 'age') !== undefined)
    return undefined
  const offsetMs = Date.parse(firstHeader(answer.headers, 'date') ?? '') - nowMs
  return Math.abs(offsetMs) >= SKEW_MS ? offsetMs : undefined
}

function exceptionIn({ headers, body }: WireAnswer): AwsException | undefined {
  const parsed = parseVendorJson(asBuffer(body).toString('utf8'))
  const members = objectOf(parsed)
  const name = nameIn(firstHeader(headers, 'x-amzn-errortype')) ?? nameIn(members['__type'])
  const message = nonEmptyText(members['message']) ?? nonEmptyText(members['Message'])
  if (name === undefined && (message === undefined || members['error'] !== undefined)) return undefined
  const dialect = isJsonObject(members['error']) ? nonEmptyText(members['error']['message']) : undefined
  return { name: name ?? '', message: message ?? dialect ?? '' }
}

/** Returns the name in `ThrottlingException:http://…` or `com.amazon.coral#ThrottlingException`. */
function nameIn(value: unknown): string | undefined {
  const text = nonEmptyText(value)
  const name = text?.split(':')[0]?.split('#').at(-1)?.trim()
  return name === '' ? undefined : name
}

const REGION = /^[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}$/

/** Where to reach an AWS service: in a region, or at the operator's address, such as a private endpoint. */
export interface AwsLocation {
  /** Region, such as `eu-central-1`. */
  readonly region?: string | undefined
  /** Address in place of `region`, such as that of a private endpoint. */
  readonly endpoint?: string | undefined
}

/**
 * Returns the address of a service: `endpoint` as given, or that of the region.
 * @param service First label of the host.
 * @throws TypeError unless exactly one of the two is given, and for an invalid region or endpoint.
 */
export function awsAddress(factory: string, service: string, { region, endpoint }: AwsLocation): VendorAddress {
  if (region === undefined && endpoint === undefined) throw new TypeError(`${factory}: set region or endpoint`)
  if (region !== undefined && endpoint !== undefined)
    throw new TypeError(`${factory}: set only one of region and endpoint`)
  if (endpoint !== undefined) return vendorAddress(endpoint)
  if (!REGION.test(region!))
    throw new TypeError(`${factory}: region must be an AWS region, such as eu-central-1: ${JSON.stringify(region)}`)
  return { origin: `https://${service}.${region}.${domainOf(service, region!)}`, prefix: '' }
}

/** Hosts of the newer kind have their own domain. */
function domainOf(service: string, region: string): string {
  return service.endsWith('-mantle') ? 'api.aws' : awsDomain(region)
}

/** `arn:aws:…:inference-profile/eu.maker.model` and `arn:aws:…::foundation-model/maker.model`. */
const ARN = /^arn:aws[a-z-]*:[a-z-]+:[a-z0-9-]*:\d*:(?:inference-profile|foundation-model)\/(.+)$/

/** The group of regions that a profile spreads calls over: `eu.`, `us-gov.`, `global.`, in front of `maker.model`. */
const REGION_PREFIX = /^(?:[a-z]{2}|us-gov|apac|global)\.(?=[a-z0-9-]+\.)/

/** The id without the account and region of an ARN: that of a model or of a system's inference profile. */
export function profileId(modelId: string): string {
  return ARN.exec(modelId)?.[1] ?? modelId
}

/** The id without ARN and region prefix: `maker.model`. An application's own profile stays as it is. */
export function baseModelId(modelId: string): string {
  return profileId(modelId).replace(REGION_PREFIX, '')
}

/** The ids under which a public catalog may list a model, that of its price first. */
export function listedModelIds(modelId: string): readonly string[] {
  const profile = profileId(modelId)
  const base = baseModelId(modelId)
  return profile === base ? [profile] : [profile, base]
}
