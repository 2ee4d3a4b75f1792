import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { AccountStorage } from '../stores/stored-bounds.ts'
import { STORED_KINDS, type StoredKind } from '../stores/stored-usage.ts'

/** Limits of one account's stored objects of a kind. */
export interface StoredBound {
  /** Maximum number of objects. */
  readonly count?: number | undefined
  /** Maximum size of all objects together, in bytes. */
  readonly byteLength?: number | undefined
}

/** Limits of one account's stored objects. An omitted kind or limit has its default. */
export type AccountStorageOptions = { readonly [Kind in StoredKind]?: StoredBound | undefined }

const KIND_MEMBERS = {
  idempotencyKeys: true,
  responses: true,
  conversations: true,
  files: true,
  tasks: true,
  webhookSecrets: true,
} satisfies MemberNames<AccountStorageOptions>
const BOUND_MEMBERS = { count: true, byteLength: true } as const

/**
 * Checks the limits and fills in the defaults.
 * @throws TypeError naming the member.
 */
export function accountStorageOf(options: AccountStorageOptions | undefined): AccountStorage {
  checkMembers(options, KIND_MEMBERS, 'createGateway', 'accountStorage')
  const boundsOf = (kind: StoredKind): Required<Record<keyof StoredBound, number>> => {
    const given = options?.[kind]
    checkMembers(given, BOUND_MEMBERS, 'createGateway', `accountStorage.${kind}`)
    const { count = STORED_KINDS[kind].count, byteLength = STORED_KINDS[kind].byteLength } = given ?? {}
    for (const [member, value] of Object.entries({ count, byteLength }))
      if (!Number.isSafeInteger(value) || value < 0)
        throw new TypeError(`createGateway: accountStorage.${kind}.${member} must be a whole number of at least 0`)
    return { count, byteLength }
  }
  return {
    idempotencyKeys: boundsOf('idempotencyKeys'),
    responses: boundsOf('responses'),
    conversations: boundsOf('conversations'),
    files: boundsOf('files'),
    tasks: boundsOf('tasks'),
    webhookSecrets: boundsOf('webhookSecrets'),
  }
}
