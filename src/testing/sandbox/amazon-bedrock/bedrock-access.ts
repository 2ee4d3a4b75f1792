import { createHash, createHmac } from 'node:crypto'
import {
  credentialOf,
  eventText,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxReply,
  type VendorErrors,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

/** Models that can only be called through an inference profile. */
const PROFILE_ONLY = /^anthropic\.claude-(?:opus|sonnet|haiku|fable)-\d/

/** Rejects a call without a bearer token or a valid signature. A bearer token takes precedence, as in the service. */
function checkAccess(call: SandboxCall, nowMs: number): void {
  const { authorization } = call.headers
  if (authorization === undefined)
    refuseAws(403, 'MissingAuthenticationTokenException', 'Missing Authentication Token', nowMs)
  if (/^Bearer /i.test(authorization)) {
    if (credentialOf(call) === 'expired') refuseAws(403, 'ExpiredTokenException', 'The token has expired', nowMs)
    return
  }
  checkAwsSignature(call, nowMs)
}

/** Rejects ids of unknown models, and of models that need a profile. */
export function checkModelId(id: string): void {
  if (/^arn:aws:bedrock:/.test(id)) return
  if (!/^[a-z0-9-]+\.[\w.:-]+$/.test(id))
    refuseAws(400, 'ValidationException', 'The provided model identifier is invalid.')
  if (PROFILE_ONLY.test(id)) {
    const message = `Invocation of model ID ${id} with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile that contains this model.`
    refuseAws(400, 'ValidationException', message)
  }
}

/** The identity that the stand-in knows, from AWS's own examples. It does not check session tokens. */
export const SANDBOX_AWS_KEYS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
} as const

/** The region of the stand-in. */
export const SANDBOX_AWS_REGION = 'us-east-1'

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/
const ALLOWED_SKEW_MS = 5 * 60 * 1000

/**
 * Checks the signature of a call like the service: it is computed again from the received request line, headers and bytes. Source:
 * AWS, "Create a signed AWS API request".
 */
function checkAwsSignature(call: SandboxCall, nowMs: number): void {
  const match = AUTHORIZATION.exec(call.headers['authorization'] ?? '')
  if (match === null)
    refuseAws(403, 'IncompleteSignatureException', 'Authorization header requires a signature.', nowMs)
  const [, keyId, day = '', region, service, names = '', signature] = match
  const refuse: (message: string, name?: string) => never = (message, name = 'InvalidSignatureException') =>
    refuseAws(403, name, message, nowMs)
  if (keyId !== SANDBOX_AWS_KEYS.accessKeyId)
    refuse('The security token included in the request is invalid.', 'UnrecognizedClientException')
  if (region !== SANDBOX_AWS_REGION || service !== 'bedrock') refuse('Credential should be scoped to a valid region.')
  if (call.headers['x-amz-security-token'] === 'expired')
    refuse('The security token included in the request is expired', 'ExpiredTokenException')
  const time = call.headers['x-amz-date'] ?? ''
  const signedAtMs = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  const now = stamp(nowMs)
  if (!(signedAtMs >= nowMs - ALLOWED_SKEW_MS))
    refuse(`Signature expired: ${time} is now earlier than ${stamp(nowMs - ALLOWED_SKEW_MS)} (${now} - 5 min.)`)
  if (signedAtMs > nowMs + ALLOWED_SKEW_MS)
    refuse(`Signature not yet current: ${time} is still later than ${stamp(nowMs + ALLOWED_SKEW_MS)} (${now} + 5 min.)`)
  const signed = names.split(';')
  if (!signed.includes('host') || !signed.includes('x-amz-date')) refuse('A header must be signed.')
  const payload = createHash('sha256').update(call.bytes).digest('hex')
  const canonical = [
    call.method,
    // The received path, encoded once more.
    call.path.split('/').map(encode).join('/'),
    canonicalQuery(call.query),
    ...signed.map((name) => `${name}:${(call.headers[name] ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    names,
    payload,
  ].join('\n')
  const text = `AWS4-HMAC-SHA256\n${time}\n${day}/${region}/${service}/aws4_request\n${hash(canonical)}`
  let key = hmac(`AWS4${SANDBOX_AWS_KEYS.secretAccessKey}`, day)
  for (const part of [region, service, 'aws4_request']) key = hmac(key, part)
  if (hmac(key, text).toString('hex') !== signature) {
    // The real text contains the signed string, including the session token.
    const token = call.headers['x-amz-security-token']
    refuse(
      `The request signature we calculated does not match the signature you provided. The Canonical String should have been '${canonical}'${token === undefined ? '' : `, x-amz-security-token:${token}`}`,
    )
  }
}

/** Decoded pairs, encoded again in the one allowed way, in order. */
function canonicalQuery(query: string): string {
  const pairs = query === '' ? [] : query.split('&')
  return pairs
    .map((pair) => {
      const [name = '', value = ''] = pair
        .split('=')
        .map((part) => encode(decodeURIComponent(part.replaceAll('+', ' '))))
      return `${name}=${value}`
    })
    .sort()
    .join('&')
}

function stamp(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/[-:]|\.\d+/g, '')
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

const REQUEST_ID = '00000000-0000-4000-8000-0000000bed0c'

/** Headers of every answer. */
export const BEDROCK_HEADERS: readonly string[] = ['x-amzn-requestid', REQUEST_ID]

/** AWS's errors: the name in a header, the text in the body. */
export const BEDROCK_ERRORS = vendorErrors(
  {
    400: ['The request is invalid.', 'ValidationException'],
    401: ['The security token included in the request is invalid.', 'UnrecognizedClientException'],
    403: ['You are not authorized to perform this action.', 'AccessDeniedException'],
    404: ['The specified resource was not found.', 'ResourceNotFoundException'],
    408: ['The model took too long.', 'ModelTimeoutException'],
    424: ['The model returned an error.', 'ModelErrorException'],
    429: ['Too many requests, please wait before trying again.', 'ThrottlingException'],
    503: ['Bedrock is unable to process your request.', 'ServiceUnavailableException'],
    '4xx': ['The system encountered an unexpected error.', 'InternalServerException'],
    '5xx': ['The system encountered an unexpected error.', 'InternalServerException'],
  },
  (status, message, [name]) => awsError(status, name ?? '', message),
  {
    quota: () => awsError(400, 'ServiceQuotaExceededException', 'Your account has exceeded its quota.'),
    badKey: () =>
      awsError(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.'),
    streamEvent: () => eventText({ message: 'The model returned an error.' }, 'error'),
  },
)

/** Makes operations of Amazon Bedrock. */
export const bedrockOperation = bedrockOperations(BEDROCK_ERRORS)

/** Returns a function that makes operations with errors of another form. */
export function bedrockOperations(errors: VendorErrors) {
  return vendorOperations({ vendor: 'amazon-bedrock', errors, headers: BEDROCK_HEADERS, access: checkAccess })
}

/** Rejects a call with an exception, with the time of the service if given. */
export function refuseAws(status: number, name: string, message: string, nowMs?: number): never {
  const date = nowMs === undefined ? [] : ['date', new Date(nowMs).toUTCString()]
  throw new RefusedCall(awsError(status, name, message, date))
}

function awsError(status: number, name: string, message: string, headers: readonly string[] = []): SandboxReply {
  const type = `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/`
  return jsonReply(status, [...BEDROCK_HEADERS, 'x-amzn-errortype', type, ...headers], { message })
}
