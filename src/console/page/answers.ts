import type * as z from 'zod'
import type { accountSchema, spendingSchema } from '../../admin/objects/account.ts'
import type { auditEntrySchema } from '../../admin/objects/audit.ts'
import type { entrySchema, holdSchema, statementSchema } from '../../admin/objects/books.ts'
import type { catalogSchema } from '../../admin/objects/catalog.ts'
import type { keySchema, madeKeySchema } from '../../admin/objects/key.ts'
import type { modelSchema, priceSchema, retiringModelSchema } from '../../admin/objects/model.ts'
import type { deliverySchema, taskSchema } from '../../admin/objects/task.ts'
import type { requestDetailSchema, requestSchema, usageRowSchema } from '../../admin/objects/usage.ts'
import type { vendorSchema } from '../../admin/objects/vendor.ts'
import type { OperatorScope } from '../../admin/operators.ts'

/** Answers of the admin API, inferred from its schemas. */
export type Account = z.infer<typeof accountSchema>
export type AuditEntry = z.infer<typeof auditEntrySchema>
export type Delivery = z.infer<typeof deliverySchema>
export type Entry = z.infer<typeof entrySchema>
export type Hold = z.infer<typeof holdSchema>
export type Key = z.infer<typeof keySchema>
export type MadeKey = z.infer<typeof madeKeySchema>
export type Model = z.infer<typeof modelSchema>
export type Price = z.infer<typeof priceSchema>
export type RetiringModel = z.infer<typeof retiringModelSchema>
export type RequestDetail = z.infer<typeof requestDetailSchema>
export type RequestRow = z.infer<typeof requestSchema>
export type Spending = z.infer<typeof spendingSchema>
export type Statement = z.infer<typeof statementSchema>
export type Task = z.infer<typeof taskSchema>
export type UsageRow = z.infer<typeof usageRowSchema>
export type Vendor = z.infer<typeof vendorSchema>

/** Page of objects. */
export interface List<Item> {
  readonly data: readonly Item[]
  readonly has_more: boolean
  readonly next: string | null
}

export interface VendorList extends List<Vendor> {
  readonly catalog: z.infer<typeof catalogSchema>
}

/** Account after a change of its money. */
export interface MoneyChange {
  /** Amount that was added or removed, or null if a change with this id was made before. */
  readonly amount: string | null
  readonly balance: string
}

export interface Usage {
  readonly as_of_ms: number
  readonly data: readonly UsageRow[]
}

/** The signed-in operator and their permissions. */
export interface Session {
  readonly operator: string
  readonly can: readonly OperatorScope[]
  readonly read_only: boolean
  readonly billing: 'on' | 'off'
}
