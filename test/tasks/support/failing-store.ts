import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import type { TaskChange } from '../../../src/stores/task-store.ts'

/** Moment in a task's life at which the store is called. */
export type Moment =
  | 'hold the money'
  | 'look for webhook secrets'
  | 'note the submission'
  | 'undo the submission'
  | 'take due tasks'
  | 'take overdue tasks'
  | 'note a report'
  | 'end the task'
  | 'find the task'
  | 'list tasks'

/** How a store fails. `refuse`: nothing is done. `forget`: it is done, and the answer is lost. */
export type StoreFault = 'refuse' | 'forget'

/** Store that fails a number of times at one moment. */
export class FailingStore {
  readonly inner = memoryStore()
  readonly store: GatewayStore
  /** How often it has failed. */
  failures = 0
  #moment: Moment | undefined
  #how: StoreFault = 'refuse'
  #left = 0

  constructor() {
    const { inner } = this
    const { ledger, tasks, webhooks } = inner
    this.store = {
      ...inner,
      ledger: { ...ledger, reserve: (...args) => this.#at('hold the money', () => ledger.reserve(...args)) },
      webhooks: {
        ...webhooks,
        secrets: (...args) => this.#at('look for webhook secrets', () => webhooks.secrets(...args)),
      },
      tasks: {
        ...tasks,
        insert: (task) => this.#at('hold the money', () => tasks.insert(task)),
        find: (...args) => this.#at('find the task', () => tasks.find(...args)),
        list: (...args) => this.#at('list tasks', () => tasks.list(...args)),
        change: (change, nowMs) => this.#at(momentOf(change), () => tasks.change(change, nowMs)),
        discard: (...args) => this.#at('undo the submission', () => tasks.discard(...args)),
        leaseDue: (query) => this.#at('take due tasks', () => tasks.leaseDue(query)),
        leaseExpired: (query) => this.#at('take overdue tasks', () => tasks.leaseExpired(query)),
      },
    }
  }

  failAt(moment: Moment, how: StoreFault, times: number): void {
    this.#moment = moment
    this.#how = how
    this.#left = times
  }

  async #at<Value>(moment: Moment, run: () => Value): Promise<Awaited<Value>> {
    if (moment !== this.#moment || this.#left === 0) return await run()
    this.#left -= 1
    this.failures += 1
    if (this.#how === 'forget') await run()
    throw new Error(`the store is down: ${moment}`)
  }
}

function momentOf({ set, resolve }: TaskChange): Moment {
  if (resolve !== undefined) return 'end the task'
  return set.credentialId === undefined ? 'note a report' : 'note the submission'
}
