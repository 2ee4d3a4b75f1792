import { expect } from 'vitest'
import type { StartedGateway } from '../../support/start-gateway.ts'

/** Initial balance of the test account, in nano-dollars. */
export const CREDIT = 100_000_000_000n

/** Nothing was charged, and no hold is left. */
export async function expectNoCharge(started: StartedGateway): Promise<void> {
  expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
}

/** Checks also that no vendor was called. */
export async function expectNothingSent(started: StartedGateway): Promise<void> {
  expect(started.sandbox.requests).toEqual([])
  await expectNoCharge(started)
}

interface Complaint {
  readonly message: unknown
  readonly type: string
  readonly param: string | null
  readonly code: string
}

/** `{error:{message,type,param,code}}` and nothing else. */
export function openaiStyle(
  param: string | null,
  code: string,
  type = 'invalid_request_error',
): { readonly error: Complaint } {
  return { error: { message: expect.any(String), type, param, code } }
}

/** `{code,message,request_id}`, and the same under `error`. */
export function upstreamStyle(code: string, error: Omit<Complaint, 'message'>): Readonly<Record<string, unknown>> {
  return {
    code,
    message: expect.any(String),
    request_id: expect.stringMatching(/^req_/),
    error: { message: expect.any(String), ...error },
  }
}
