import type { Usage } from '../core/usage.ts'
import type { TaskDetails } from '../stores/task-store.ts'
import { storableText, tagsOf, type UsageDraft } from '../usage/usage-record.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { endUserOf } from './end-user.ts'
import type { PipelineContext } from './pipeline-context.ts'
import type { CallEnding } from './vendor-response.ts'

/** Headers in which a caller names its end user, and its own tags of the call, separated by commas. */
const USER_HEADER = 'x-signalbox-user'
const TAGS_HEADER = 'x-signalbox-tags'

/** Ended call. */
export interface EndedCall {
  readonly ending: CallEnding
  readonly candidate: Candidate | undefined
  /** HTTP status of the caller's answer. */
  readonly status: number
  /** Milliseconds from the request's arrival to the first content, or `undefined` if there was none. */
  readonly firstByteMs?: number | undefined
  /** The vendor's id of its answer, if it has one. */
  readonly vendorRequestId?: string | undefined
}

/** Returns the record of a call before its charge is known. */
export function usageDraft(
  context: PipelineContext,
  reserved: Reserved,
  { candidate, ending, status, firstByteMs, vendorRequestId }: EndedCall,
  usage: Usage | undefined,
): UsageDraft {
  const { principal, body, chain } = reserved
  const attribution = attributionOf(reserved)
  const nowMs = context.clock.now()
  return {
    id: reserved.requestId,
    accountId: principal.accountId,
    keyId: principal.keyId,
    endUser: attribution?.endUser,
    tags: attribution?.tags ?? NO_TAGS,
    endpoint: reserved.endpoint.id,
    model: candidate?.model.id ?? chain[0]?.id ?? body.model,
    requestedModel: body.model,
    vendor: candidate?.vendor.id,
    credentialId: candidate?.credentialId,
    vendorRequestId,
    ending: ending.kind,
    status,
    code: ending.error?.code,
    isStream: reserved.isStream,
    usage: usage ?? ending.unbilled?.usage ?? NO_USAGE,
    isEstimated: ending.usage === undefined && ending.estimatedUsage !== undefined && usage !== undefined,
    durationMs: nowMs - reserved.startedAtMs,
    firstByteMs,
    attempts: reserved.attemptsUntil(nowMs),
  }
}

/** Returns the end user and tags of a call, or `undefined` if there are neither. Values of the host take precedence. */
export function attributionOf({
  principal,
  request,
  body,
}: Pick<Reserved, 'principal' | 'request' | 'body'>): TaskDetails['attribution'] {
  const named = endUserOf(principal, body) ?? request.header(USER_HEADER)
  const endUser = named && storableText(named)
  const tags = tagsOf(principal.tags, request.header(TAGS_HEADER))
  return endUser === undefined && tags.length === 0 ? undefined : { endUser, tags }
}

const NO_TAGS: readonly string[] = []
const NO_USAGE: Usage = {}
