import type { Accounts } from '../gateway/accounts.ts'
import type { Keys } from '../gateway/keys.ts'
import { accountObject, keyObject } from './objects/accounts.ts'

/** Ids of the objects that a change names. */
export interface ChangeSubject {
  readonly account?: string | undefined
  readonly key?: string | undefined
}

/** Returns a key or an account in the format of the admin API, or `undefined` if the change names neither or it does not exist. */
export async function auditState(
  { accounts, keys }: { readonly accounts: Pick<Accounts, 'get'>; readonly keys: Pick<Keys, 'find'> },
  { account, key }: ChangeSubject,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  if (key !== undefined) {
    const record = await keys.find(key)
    return record && keyObject(record)
  }
  const stored = account === undefined ? undefined : await accounts.get(account)
  return stored && accountObject(stored)
}
