import { jsonReply, RefusedCall, type SandboxReply, type VendorErrors } from '../sandbox-operation.ts'

const REQUEST_ID = '00000000-0000-4000-8000-0000000bed0c'

const USUAL: Readonly<Record<number, readonly [name: string, message: string]>> = {
  400: ['ValidationException', 'The request is invalid.'],
  401: ['UnrecognizedClientException', 'The security token included in the request is invalid.'],
  403: ['AccessDeniedException', 'You are not authorized to perform this action.'],
  404: ['ResourceNotFoundException', 'The specified resource was not found.'],
  408: ['ModelTimeoutException', 'The model took too long.'],
  424: ['ModelErrorException', 'The model returned an error.'],
  429: ['ThrottlingException', 'Too many requests, please wait before trying again.'],
  503: ['ServiceUnavailableException', 'Bedrock is unable to process your request.'],
}

/** Headers of every answer. */
export const BEDROCK_HEADERS: readonly string[] = ['x-amzn-requestid', REQUEST_ID]

/** AWS's errors: the name in a header, the text in the body. */
export const BEDROCK_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const [name, text] = USUAL[status] ?? ['InternalServerException', 'The system encountered an unexpected error.']
    const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
    return awsError(status, name, message ?? text, wait)
  },
  quota: () => awsError(400, 'ServiceQuotaExceededException', 'Your account has exceeded its quota.', []),
  badKey: () =>
    awsError(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.', []),
  streamEvent: () => 'event: error\ndata: {"message":"The model returned an error."}\n\n',
}

/** Creates a rejection by an exception, with the time of the service if given. */
export function awsRefusal(status: number, name: string, message: string, nowMs?: number): RefusedCall {
  const date = nowMs === undefined ? [] : ['date', new Date(nowMs).toUTCString()]
  return new RefusedCall(awsError(status, name, message, date))
}

function awsError(status: number, name: string, message: string, headers: readonly string[]): SandboxReply {
  const type = `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/`
  return jsonReply(status, [...BEDROCK_HEADERS, 'x-amzn-errortype', type, ...headers], { message })
}
