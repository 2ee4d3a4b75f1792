import { isJsonObject } from '../../core/json.ts'

/** An error of Google's, whatever envelope it came in. */
export interface GoogleError {
  /** The HTTP status that the error itself states, if it states one. */
  readonly httpStatus: number | undefined
  /** `INVALID_ARGUMENT`, or in newer APIs a lower-case code such as `invalid_request`. */
  readonly token: string | undefined
  readonly message: string
  /** `ErrorInfo.reason`: `API_KEY_INVALID`. */
  readonly reasons: readonly string[]
  /** `QuotaFailure.violations[].quotaId`: which limits were hit. */
  readonly quotaIds: readonly string[]
  /** `RetryInfo.retryDelay` in seconds. */
  readonly retryDelaySeconds: number | undefined
}

/**
 * Reads an error body: an object or an array of one, with a code that is a number (`google.rpc.Status`) or a string
 * (Interactions API). Undefined when the value is no error.
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

/** A duration as protobuf's JSON writes it: `21.5s`. */
function seconds(value: unknown): number | undefined {
  const digits = typeof value === 'string' ? /^(\d+(?:\.\d+)?)s$/.exec(value)?.[1] : undefined
  return digits === undefined ? undefined : Number(digits)
}
