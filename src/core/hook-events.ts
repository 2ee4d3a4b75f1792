/** Events of hooks; part of `GatewayEvent`. */
export type HookEvent =
  | {
      /** A hook has denied a request or an answer. */
      readonly type: 'hook-denied'
      readonly requestId: string
      readonly hook: string
      readonly point: 'request' | 'answer' | 'text'
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      /** Error code that the caller reads, if the caller gets an error. */
      readonly code: string
    }
  | {
      /** A hook has answered a request instead of a vendor. */
      readonly type: 'hook-answered'
      readonly requestId: string
      readonly hook: string
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
    }
  | {
      /** A hook has failed, and its input was accepted unchecked because of `onFailure: 'allow'`. */
      readonly type: 'hook-bypassed'
      readonly requestId: string
      readonly hook: string
      readonly point: 'request' | 'wire' | 'answer' | 'text' | 'failed'
      readonly endpoint: string
      readonly accountId: string
      readonly keyId: string
      readonly model: string
      readonly reason: 'threw' | 'timeout' | 'unusable-result' | 'too-large'
      readonly error: unknown
    }
