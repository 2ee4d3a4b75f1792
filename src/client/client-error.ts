import { ERROR_TABLE, type ErrorCode, GatewayError } from '../core/errors.ts'

/** Reads an error answer, in whatever dialect it came, as the error that the gateway threw. */
export async function clientError(response: Response): Promise<GatewayError> {
  const body = parse(await response.text())
  return errorOf(body, response.status, Number(response.headers.get('retry-after') ?? Number.NaN))
}

/** Makes an error of an OpenAI-style error body. */
export function errorOf(body: unknown, status: number, retryAfterSeconds: number = Number.NaN): GatewayError {
  const fields = (body as { error?: unknown } | undefined)?.error ?? body ?? {}
  const { message, code, type, param } = fields as Record<string, unknown>
  return new GatewayError(codeOf(code, status), {
    message: text(message),
    publicCode: text(code),
    type: text(type),
    param: text(param),
    status,
    retryAfterSeconds: Number.isFinite(retryAfterSeconds) ? retryAfterSeconds : undefined,
  })
}

function codeOf(code: unknown, status: number): ErrorCode {
  if (typeof code === 'string' && Object.hasOwn(ERROR_TABLE, code)) return code as ErrorCode
  if (status === 402) return 'insufficient_balance'
  if (status === 429) return 'rate_limited'
  return status < 500 ? 'upstream_rejected' : 'upstream_unavailable'
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    return { message: body }
  }
}
