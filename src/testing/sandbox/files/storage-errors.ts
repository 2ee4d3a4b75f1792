import type { SandboxReply, VendorErrors } from '../sandbox-operation.ts'

const USUAL: Readonly<Record<number, readonly [code: string, message: string]>> = {
  403: ['AccessDenied', 'You have no right to access this object.'],
  404: ['NoSuchKey', 'The specified key does not exist.'],
}

/** Errors of an object store: XML (Alibaba Cloud OSS, HTTP 403 errors). */
export const STORAGE_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const [code, text] = USUAL[status] ?? ['InternalError', 'We encountered an internal error. Please try again.']
    const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
    return storageError(status, code, message ?? text, wait)
  },
  quota: () => storageError(403, 'InDebt', 'Current user is indebted.', []),
  badKey: () => storageError(403, 'AccessDenied', 'You have no right to access this object.', []),
  streamEvent: () => '',
}

function storageError(status: number, code: string, message: string, headers: readonly string[]): SandboxReply {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error>\n  <Code>${code}</Code>\n  <Message>${message}</Message>\n</Error>\n`
  return { status, headers: ['content-type', 'application/xml', ...headers], pieces: [body], streamed: false }
}
