export type { ContractClock, ContractRunner, ContractSubject } from './contracts/contract-runner.ts'
export { standingClock } from './contracts/contract-runner.ts'
export { describeIdempotencyStore } from './contracts/idempotency-store-contract.ts'
export { describeInteractionStore } from './contracts/interaction-store-contract.ts'
export { describeKeyStore } from './contracts/key-store-contract.ts'
export { describeLedger } from './contracts/ledger-contract.ts'
export type { RateLimiterSubject } from './contracts/rate-limiter-contract.ts'
export {
  type ConcurrencyLimiterSubject,
  describeConcurrencyLimiter,
  describeRateLimiter,
} from './contracts/rate-limiter-contract.ts'
export type { LedgerStore, TaskContractStore } from './contracts/store-example.ts'
export { describeTaskStore } from './contracts/task-store-contract.ts'
export { describeUsageStore, type UsageContractStore } from './contracts/usage-store-contract.ts'
export { describeWebhookStore } from './contracts/webhook-store-contract.ts'
export type { CountingIdsOptions } from './counting-ids.ts'
export { countingIds } from './counting-ids.ts'
export type { FakeClock, FakeClockOptions } from './fake-clock.ts'
export { fakeClock } from './fake-clock.ts'
export type { Fault, QueuedFault } from './sandbox/fault.ts'
export type { SandboxCall } from './sandbox/sandbox-operation.ts'
export type { Sandbox, SandboxOptions } from './sandbox/sandbox-vendors.ts'
export { sandboxVendors } from './sandbox/sandbox-vendors.ts'
