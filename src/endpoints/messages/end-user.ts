import { createHash } from 'node:crypto'

/** What other vendors take as the name of an end user. */
const PLAIN_NAME = /^[\w.@:-]{1,64}$/

/**
 * The end user's name for another vendor. Coding clients write ids of device, account and session into theirs, at a length
 * that others refuse; of such a name the SHA-256 goes out, which still tells users apart.
 */
export function endUser(userId: string): string {
  return PLAIN_NAME.test(userId) ? userId : createHash('sha256').update(userId).digest('hex')
}
