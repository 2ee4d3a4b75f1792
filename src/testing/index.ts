export { describeAuditStore } from './contracts/audit-store-contract.ts'
export {
  type ContractClock,
  type ContractRunner,
  type ContractSubject,
  type LedgerStore,
  standingClock,
  type TaskContractStore,
} from './contracts/contract-runner.ts'
export { type ConversationStores, describeConversationStore } from './contracts/conversation-store-contract.ts'
export { describeBatchStore, describeFileStore } from './contracts/file-store-contract.ts'
export { describeIdempotencyStore } from './contracts/idempotency-store-contract.ts'
export { describeKeyStore } from './contracts/key-store-contract.ts'
export { describeLedger } from './contracts/ledger-contract.ts'
export {
  type ConcurrencyLimiterSubject,
  describeConcurrencyLimiter,
  describeRateLimiter,
  describeResponseCache,
  type RateLimiterSubject,
  type ResponseCacheSubject,
} from './contracts/limiter-contracts.ts'
export { describeInteractionStore, describeResponseStore } from './contracts/response-store-contract.ts'
export { describeSettingStore } from './contracts/setting-store-contract.ts'
export { describeStoredUsage } from './contracts/stored-usage-contract.ts'
export { describeTaskStore } from './contracts/task-store-contract.ts'
export { describeUsageStore, type UsageContractStore } from './contracts/usage-store-contract.ts'
export { describeWebhookStore } from './contracts/webhook-store-contract.ts'
export { type CountingIdsOptions, countingIds, type FakeClock, type FakeClockOptions, fakeClock } from './fake-clock.ts'
export type { Fault, QueuedFault } from './sandbox/fault.ts'
export type { ScriptedToolCall, ScriptedTurn, ScriptedUsage } from './sandbox/model/chat-turn.ts'
export type { SandboxCall } from './sandbox/sandbox-operation.ts'
export { type Sandbox, type SandboxOptions, sandboxVendors } from './sandbox/sandbox-vendors.ts'
export type { ReplyCondition, ScriptedError, ScriptedReply } from './sandbox/scripted-reply.ts'
